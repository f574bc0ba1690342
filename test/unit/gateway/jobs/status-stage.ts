// A commit whose status is set by runs, on a stage whose workers can be killed at any of their calls.
import { githubChannel } from '../../../../src/plugins/channels/github.ts'
import { openChannel, sectionOf } from '../../plugins/channels/stage.ts'
import { gitlabChannel } from '../../../../src/plugins/channels/gitlab.ts'
import type { AgentPlan } from '../../../../src/gateway/jobs/plan.ts'
import type { RunResult } from '../../../../src/model/runner.ts'
import type { Store } from '../../../../src/store/store.ts'
import { createRandom } from '../../../contract/interleaved.ts'
import { planAgent, createStage, ok, pass, scriptRunner, type Stage } from './stage.ts'

const commitName = 'acme/app@0123456789abcdef0123456789abcdef01234567'
export const failed: RunResult = { status: 'error', detail: 'The model refuses.', retryable: false }

type Status = { readonly id: number; readonly context: string; readonly state: string; readonly description: string }
export type ForgeName = 'github' | 'gitlab'
export type Fault = 'lost' | '502' | '503' | 'limited' | 'unwritten'

type Answer = readonly [status: number, body: unknown]

/** The statuses of one commit, as the API of a forge has them. A fault applies to the next request that writes. */
function createForge(write: (given: Record<string, string>) => Answer, read: () => unknown, limited: Answer) {
  return (fault: () => Fault | undefined): typeof fetch =>
    async (_, init) => {
      const answer = ([status, body]: Answer) => new Response(JSON.stringify(body), { status })
      if (init?.method === 'GET') return answer([200, read()])
      const met = fault()
      if (met === '503') return answer([503, {}])
      if (met === 'limited') return answer(limited)
      if (met === 'unwritten') throw new TypeError('fetch failed')
      // as: the channel sends a text
      const written = write(JSON.parse(String(init?.body)) as Record<string, string>)
      if (met === 'lost') throw new TypeError('fetch failed')
      return answer(met === '502' ? [502, {}] : written)
    }
}

/** `statuses`: each change, in the words of GitHub. */
export function createCommit(fault: () => Fault | undefined = () => undefined, forge: ForgeName = 'github') {
  const statuses: Status[] = []
  const add = ({ context = '', state = '', description = '' }: Record<string, string>) =>
    statuses.push({ id: statuses.length + 1, context, state, description })
  const isOpen = () => statuses.at(-1)?.state === 'pending'
  /** GitLab shows one entry for a status that is pending and then ends, and has no `error`. */
  const toShownState = (state: string | undefined) => (state === 'error' ? 'failed' : state)
  const apis = {
    github: createForge(
      (given) => (add(given), [201, statuses.at(-1)]),
      () => statuses.toReversed(),
      [403, { message: 'You have exceeded a secondary rate limit' }],
    ),
    gitlab: createForge(
      ({ name = '', state = '', description = '' }) => {
        if (isOpen() && state === 'pending')
          return [
            400,
            {
              message:
                'Cannot transition status via :enqueue from :pending (Reason(s): Status cannot transition via "enqueue")',
            },
          ]
        add({ context: name, state: state === 'failed' ? 'error' : state, description })
        return [201, { id: statuses.length }]
      },
      () =>
        statuses
          .filter(({ state }, at) => state !== 'pending' || at === statuses.length - 1)
          .map(({ context, state, ...rest }) => ({ ...rest, name: context, status: toShownState(state) })),
      [429, {}],
    ),
  }
  return { statuses, forge, request: apis[forge](fault) }
}

export function open(
  stage: Stage,
  { request, forge = 'github' }: { readonly request: typeof fetch; readonly forge?: ForgeName },
  runner = scriptRunner(),
  store?: Store,
) {
  const channel =
    forge === 'github'
      ? openChannel(githubChannel, sectionOf(githubChannel).parse({ token: 'ghp_token' }), { fetch: request })
      : openChannel(gitlabChannel, sectionOf(gitlabChannel).parse({ token: 'glpat-token' }), { fetch: request })
  const channels = new Map([[forge, channel]])
  const worker = stage.openWorker({
    runner: runner.runner,
    channels,
    ...(store && { store }),
    settings: { maxConcurrent: 1 },
  })
  return { turns: runner.turns, worker }
}

export const buildPlan = (over: Parameters<typeof planAgent>[0] = {}): AgentPlan =>
  planAgent({
    status: 'review',
    origin: { hook: 'github', place: { channel: 'github', commit: commitName } },
    ...over,
    action: { deliver: false, ...over.action },
  })

export const shown = (statuses: readonly Status[]) =>
  statuses.map(({ state, description }) => `${state}: ${description}`)

const never = new Promise<never>(() => {})

/** A store and a commit for a process that dies: one of its calls, with or without its effect, and all later calls never return. */
function createMortal({ store: living }: Stage, commit: ReturnType<typeof createCommit>, random: () => number) {
  let left = Math.floor(random() * 60)
  const hasDied = () => (left -= 1) < 0
  const callMortally = async (call: () => Promise<unknown>): Promise<unknown> => {
    if (left < 0 || hasDied()) return await never
    const result = await call()
    return left < 0 || hasDied() ? await never : result
  }
  const store = new Proxy(living, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function'
        ? (...given: unknown[]) => callMortally(async () => member.apply(target, given))
        : member
    },
  })
  // as: what the proxied call returns
  const request: typeof fetch = async (...given) => (await callMortally(() => commit.request(...given))) as Response
  return { store, request }
}

const faults: readonly Fault[] = ['lost', '502', '503', 'limited', 'unwritten']
const ends = ['cancelled', 'superseded', 'expired'] as const

/** Makes one or two runs for a commit, with up to three kills, faults of the forge, and cancellations. Returns the runs and the statuses. */
async function runSeries(seed: number, forge: ForgeName) {
  const stage = createStage()
  const random = createRandom(seed)
  const pick = <Item>(items: readonly Item[]): Item | undefined => items[Math.floor(random() * items.length)]
  let mayFail = true
  const commit = createCommit(() => (mayFail && random() < 0.3 ? pick(faults) : undefined), forge)
  const place = { hook: forge, place: { channel: forge, commit: commitName } }
  const answer = () => (mayFail && random() < 0.4 ? undefined : random() < 0.3 ? failed : ok('Good.'))
  const start = () => {
    const { store, request } = createMortal(stage, commit, random)
    return open(stage, { request, forge }, scriptRunner(answer), store).worker
  }
  let killed = start()
  const runs = await stage.accept(buildPlan({ origin: place }))
  if (random() < 0.4) runs.push(...(await stage.accept(buildPlan({ origin: place, sessionKey: 'hook:b' }))))
  const ids = runs.filter((_, index) => index % 2 === 0)
  for (let kills = Math.floor(random() * 4); kills > 0; kills -= 1) {
    await pass(Math.floor(random() * 40_000))
    const state = random() < 0.3 ? pick(ends) : undefined
    if (state !== undefined) await stage.store.endJob(pick(ids) ?? '', { state, reason: 'Somebody asked for it.' })
    // ends the timers of the killed worker, whose calls no longer have any effect
    void killed.stop({ graceMs: 0 })
    killed = start()
  }
  mayFail = false
  void killed.stop({ graceMs: 0 })
  const { worker } = open(
    stage,
    commit,
    scriptRunner(() => ok('Good.')),
  )
  const countOpen = async () => {
    const { queued, running } = (await stage.store.counts()).jobs
    return queued + running
  }
  for (let minutes = 30; minutes > 0 && (await countOpen()) > 0; minutes -= 1) await pass(60_000)
  const left = await countOpen()
  void worker.stop({ graceMs: 0 })
  await pass(6_000)
  const last = await stage.readJob(ids.at(-1))
  return { ids, left, last, statuses: commit.statuses }
}

/**
 * The mistakes after a series: a job that has not ended, a status that is set twice, a status of the first run after one of the last run, or
 * a last status that is not the result of the last run. Needs fake timers.
 */
export async function findStatusFaults(seed: number, forge: ForgeName): Promise<string[]> {
  const { ids, left, last, statuses } = await runSeries(seed, forge)
  const set = shown(statuses)
  const runs = set.map((text) => / (job-\d+) /.exec(text)?.[1])
  const isInOrder = runs.lastIndexOf(ids[0]) < runs.indexOf(ids.at(-1)) || ids.length === 1
  const state = statuses.at(-1)?.state
  return [
    ...(left === 0 ? [] : [`${seed}: ${left} jobs have not ended`]),
    ...(new Set(set).size === set.length ? [] : [`${seed}: set twice: ${set.join(', ')}`]),
    ...(isInOrder && runs.at(-1) === ids.at(-1) ? [] : [`${seed}: statuses of ${runs.join()} for ${ids.join()}`]),
    ...(state === (last.state === 'done' ? 'success' : 'error')
      ? []
      : [`${seed}: ${state} of a run that is ${last.state}`]),
  ]
}
