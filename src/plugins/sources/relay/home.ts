// The envelopes of one home, in a folder: a file for each, named by its number, and `state`, so that numbers never fall.
import { randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { parsePublicKeys, type PublicKeys } from './keys.ts'
import { privateMode, replaceFile, flushFolder, tryParseJson } from '../shared/kit.ts'

/** Of one home. `ageMs`: how long an envelope is kept. */
export type HomeLimits = { readonly bytes: number; readonly envelopes: number; readonly ageMs: number }

/** `through`: the highest number that was removed. `seenAt`: about when the home last connected, in milliseconds since the epoch. */
const State = z.strictObject({ keys: z.string(), epoch: z.string(), through: z.int(), seenAt: z.number() })
type State = z.infer<typeof State>

type Numbered = { readonly number: number; readonly envelope: Buffer }

export type Home = {
  readonly keys: PublicKeys
  /** Numbers are compared within an epoch only. */
  epoch(): string
  seenAt(): number
  /** Stores the envelope: it is on disk when this resolves. False if the home is full. */
  append(envelope: Buffer): Promise<boolean>
  /** The oldest envelopes after a number, of together at most `maxBytes`, but at least one if there is one. */
  list(after: number, maxBytes: number): Promise<Numbered[]>
  /**
   * Removes the envelopes up to a number that the home has taken. A number that was never given means that the folder is older than the home's place, such
   * as one from a backup: then a new epoch begins.
   */
  take(epoch: string, through: number): Promise<void>
  /** Removes the envelopes that are too old. */
  removeOld(): Promise<void>
  /** Notes that the home has connected. Written at most once in a day. */
  noteSeen(): Promise<void>
}

type HomeParts = { readonly folder: string; readonly limits: HomeLimits; readonly clock: () => number }
type Kept = { readonly number: number; readonly bytes: number; readonly at: number }

const stateFile = 'state'
const ending = '.sealed'
const toName = (number: number) => `${String(number).padStart(16, '0')}${ending}`
const dayMs = 86_400_000

export async function createHome(keys: PublicKeys, parts: HomeParts): Promise<Home> {
  const { folder, clock } = parts
  await mkdir(folder, { mode: 0o700 })
  const state = { keys: keys.text, epoch: randomUUID(), through: 0, seenAt: clock() }
  await replaceFile(join(folder, stateFile), JSON.stringify(state), privateMode)
  await flushFolder(dirname(folder))
  return buildHome(state, keys, [], parts)
}

/** Undefined, after the folder is removed, if its creation did not end: then it has no envelope. */
export async function openHome(parts: HomeParts): Promise<Home | undefined> {
  const { folder } = parts
  const names = await readdir(folder)
  for (const name of names) if (name.endsWith('.tmp')) await rm(join(folder, name))
  if (!names.includes(stateFile)) {
    await rm(folder, { recursive: true })
    return undefined
  }
  const file = join(folder, stateFile)
  const state = State.safeParse(tryParseJson(await readFile(file, 'utf8'))).data
  const keys = parsePublicKeys(state?.keys ?? '')
  if (state === undefined || keys === undefined)
    throw new Error(`${file} is damaged. Restore it, or remove its folder with the requests in it.`)
  const kept: Kept[] = []
  for (const name of names.filter((each) => each.endsWith(ending)).toSorted()) {
    const { size, mtimeMs } = await stat(join(folder, name))
    kept.push({ number: Number(name.slice(0, -ending.length)), bytes: size, at: mtimeMs })
  }
  return buildHome(state, keys, kept, parts)
}

function buildHome(found: State, keys: PublicKeys, kept: Kept[], { folder, limits, clock }: HomeParts): Home {
  let state = found
  let next = Math.max(state.through, kept.at(-1)?.number ?? 0) + 1
  let bytes = kept.reduce((sum, each) => sum + each.bytes, 0)
  let reserved = 0
  let last: Promise<unknown> = Promise.resolve()

  /** One change of the folder at a time: the home must not see a number before all lower ones are there. */
  function inOrder<T>(work: () => Promise<T>): Promise<T> {
    const done = last.then(work)
    last = done.catch(() => undefined)
    return done
  }

  async function saveState(change: Partial<State>): Promise<void> {
    const changed = { ...state, ...change }
    await replaceFile(join(folder, stateFile), JSON.stringify(changed), privateMode)
    state = changed
  }

  async function removeThrough(through: number): Promise<void> {
    if (through <= state.through) return
    // before the files go: a start computes the next number from both
    await saveState({ through })
    while (kept[0] !== undefined && kept[0].number <= through) {
      const [first] = kept.splice(0, 1)
      bytes -= first?.bytes ?? 0
      await rm(join(folder, toName(first?.number ?? 0)), { force: true })
    }
  }

  function choose(after: number, maxBytes: number): Kept[] {
    let left = maxBytes
    const chosen: Kept[] = []
    for (const each of kept) {
      if (each.number <= after) continue
      left -= each.bytes
      if (chosen.length > 0 && left < 0) break
      chosen.push(each)
    }
    return chosen
  }

  async function read({ number }: Kept): Promise<Numbered> {
    return { number, envelope: await readFile(join(folder, toName(number))) }
  }

  async function write(envelope: Buffer): Promise<void> {
    const number = next
    // also if it fails, since the file may have its name already
    next += 1
    await replaceFile(join(folder, toName(number)), envelope, privateMode)
    kept.push({ number, bytes: envelope.length, at: clock() })
    bytes += envelope.length
  }

  return {
    keys,
    epoch: () => state.epoch,
    seenAt: () => state.seenAt,
    async append(envelope) {
      const size = envelope.length
      const isFull = kept.length + reserved >= limits.envelopes || bytes + size > limits.bytes
      if (isFull) return false
      reserved += 1
      bytes += size
      try {
        await inOrder(() => write(envelope))
      } finally {
        reserved -= 1
        bytes -= size
      }
      return true
    },
    list: (after, maxBytes) => inOrder(() => Promise.all(choose(after, maxBytes).map(read))),
    take: (epoch, through) =>
      inOrder(async () => {
        if (epoch !== state.epoch) return
        if (through >= next) await saveState({ epoch: randomUUID() })
        else await removeThrough(through)
      }),
    removeOld: () =>
      inOrder(async () => {
        const old = kept.filter(({ at }) => at < clock() - limits.ageMs).at(-1)
        if (old !== undefined) await removeThrough(old.number)
      }),
    noteSeen: () =>
      inOrder(async () => {
        if (clock() - state.seenAt > dayMs) await saveState({ seenAt: clock() })
      }),
  }
}
