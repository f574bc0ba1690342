// What a source promises: each item becomes one delivery, whatever crashes or fails in between, and its passes end when they are stopped.
import type { SourceDefinition } from '../model/source.ts'
import { answer, breakConnection, createStall, type Fault, listLongTexts, waitFor } from './faults.ts'
import { createWorld, type Instance, openSource, type SourceTrial, type World } from './source-world.ts'

const added = 3
/** How many passes, or pauses in a pass, a source may need for what is new. */
const most = 80
const again = 3
const maxFaults = 12
const endingMs = 5_000

/**
 * The promises that the source breaks, each as a sentence; an empty list if it keeps all. Replaces `fetch` of the process while it runs, so check
 * one source after the other. Pauses of the host end at once.
 */
export async function checkSource<Options>(
  definition: SourceDefinition<Options>,
  trial: SourceTrial,
): Promise<string[]> {
  const parsed = definition.options.safeParse(trial.options)
  if (!parsed.success) return [`The options are invalid: ${parsed.error.message}`]
  const open = (world: World) => openSource(definition, parsed.data, { world, trial })
  const good = await checkPlain(open, trial)
  const named = checkNames(definition, trial, good.world)
  if (good.broken.length > 0 || good.stores === 0) return [...good.broken, ...named]
  return [
    ...named,
    ...(await checkCrashes(open, trial, good.stores)),
    ...(await checkFailures(open, trial, good.requests)),
    ...(await checkOther(open, trial)),
    ...(await checkStop(open, trial)),
  ]
}

type Open = (world: World) => Instance

/** A store without anything new, and then some items that nothing has fetched yet. `isDone`: whether each of them is stored. */
async function prepare(open: Open, { add }: SourceTrial) {
  const world = createWorld()
  const first = open(world)
  for (let known = -1; known < world.items.size;) {
    known = world.items.size
    await first.drive({ most: again })
  }
  await first.stop(endingMs)
  const before = world.items.size
  for (let count = 0; count < added; count += 1) await add()
  return { world, isDone: () => world.items.size - before >= added, count: () => world.items.size - before }
}

/** What is wrong if the items that were added are not there once each. */
function describeCount(what: string, count: number): string[] {
  if (count === added) return []
  return count < added
    ? [`${what}: ${added - count} of ${added} items are lost.`]
    : [`${what}: ${added} items become ${count} deliveries, because the key of an item changes.`]
}

async function checkPlain(open: Open, trial: SourceTrial) {
  const { world, isDone, count } = await prepare(open, trial)
  const one = open(world)
  await one.drive({ most, isDone })
  const { stores, requests } = one.counts()
  await one.drive({ most: again })
  const read = await one.readFiles(world.refs)
  const stopped = await one.stop(endingMs)
  const next = open(world)
  await next.drive({ most: again })
  await next.stop(endingMs)
  const thrown = one.failures()[0]
  const broken = [
    ...describeCount('A pass', count()),
    ...(thrown === undefined ? [] : [`A good pass fails: ${thrown}`]),
    ...(read === world.refs.length ? [] : ['An item has files, and readFiles does not yield the contents of each.']),
    ...(stopped ? [] : ['A stop between two passes: the source does not end.']),
    ...world.faults,
  ]
  return { world, broken, stores, requests }
}

function checkNames<Options>(
  { account, options }: SourceDefinition<Options>,
  { options: given, renewed }: SourceTrial,
  world: World,
): string[] {
  const name = account(options.parse(given))
  if (name === undefined) return ['account returns undefined, so nothing is watched with these options.']
  const broken: string[] = []
  if (renewed === undefined) return broken
  if (account(options.parse(renewed)) !== name)
    broken.push('account returns another name for another credential, so the source begins again.')
  const secrets = listCredentials(given, renewed)
  const shown = { account: [name], key: [...world.items.keys()], place: [world.place ?? ''] }
  for (const [what, texts] of Object.entries(shown))
    if (texts.some((text) => secrets.some((secret) => text.includes(secret)))) broken.push(`The ${what} has a secret.`)
  return broken
}

/** The process ends before or after each commit, and another one goes on. */
async function checkCrashes(open: Open, trial: SourceTrial, stores: number): Promise<string[]> {
  const broken: string[] = []
  for (let at = 1; at <= stores; at += 1) {
    for (const crash of ['before', 'after'] as const) {
      const { world, isDone, count } = await prepare(open, trial)
      const dying = open(world)
      await dying.drive({ most, isDone, crash: { at, crash } })
      dying.kill()
      const next = open(world)
      await next.drive({ most, isDone })
      await next.drive({ most: again })
      await next.stop(endingMs)
      broken.push(...describeCount(`Crash ${crash} call ${at} of store`, count()))
    }
  }
  return broken
}

async function checkFailures(open: Open, trial: SourceTrial, requests: number): Promise<string[]> {
  const broken: string[] = []
  const secrets = listCredentials(trial.options, trial.renewed ?? trial.options)
  const check = async (what: string, faults: { fault?: Fault; at?: number; failsToStore?: boolean }) => {
    const { world, isDone, count } = await prepare(open, trial)
    const one = open(world)
    await one.drive({ most, isDone, ...faults })
    const failures = one.failures()
    if (failures.length === 0) broken.push(`${what}: no pass fails and no problem is shown, so nobody learns of it.`)
    if ([...failures, ...one.logged()].some((shown) => secrets.some((secret) => shown.includes(secret))))
      broken.push(`${what}: the problem or the log has a secret.`)
    await one.drive({ most, isDone })
    await one.drive({ most: again })
    await one.stop(endingMs)
    broken.push(...describeCount(`${what}, and then none`, count()))
  }
  // as providers do, the body quotes what was sent
  const body = { error: { message: `Not now: ${secrets.join(' ')}` } }
  for (let at = 1; at <= Math.min(requests, maxFaults); at += 1) {
    const nth = `to request ${at}`
    await check(`Answer 401 ${nth}`, { at, fault: answer(401, body) })
    await check(`Answer 500 ${nth}`, { at, fault: answer(500, body) })
    await check(`Answer of another form ${nth}`, { at, fault: async () => new Response('<html>Sorry</html>') })
    await check(`Connection that breaks ${nth}`, { at, fault: breakConnection })
  }
  await check('A store that fails', { failsToStore: true })
  return broken
}

/** Another gateway stores the same items meanwhile: the first one learns of it, and goes on where the other one is. */
async function checkOther(open: Open, trial: SourceTrial): Promise<string[]> {
  const { world, isDone, count } = await prepare(open, trial)
  const slow = open(world)
  const held = slow.holdStore()
  const driving = slow.drive({ most })
  await held.reached
  const other = open(world)
  await other.drive({ most, isDone })
  await other.stop(endingMs)
  held.release()
  await driving
  const broken = describeCount('Two gateways at a time', count())
  await trial.add()
  await slow.drive({ most, isDone: () => count() > added })
  await slow.stop(endingMs)
  if (count() !== added + 1 && broken.length === 0)
    broken.push('After another gateway moved the place, the source does not read it again, and stores nothing more.')
  return broken
}

async function checkStop(open: Open, trial: SourceTrial): Promise<string[]> {
  const { world } = await prepare(open, trial)
  const one = open(world)
  const stall = createStall()
  const stopped = new Promise<boolean>((resolve) => {
    void one.drive({ most, fault: (request) => stall.fault(request, () => resolve(one.stop(endingMs))) })
  })
  const isEnded = await waitFor(stopped, 2 * endingMs)
  if (isEnded === undefined) return []
  return isEnded && !stall.isIgnored()
    ? []
    : ['A stop during a request: the pass does not end at once. Give each request the signal of the pass.']
}

/** The texts that differ between the options and those with another credential. */
function listCredentials(options: object, renewed: object): string[] {
  const others = listLongTexts(renewed)
  return listLongTexts(options).filter((secret) => !others.includes(secret))
}
