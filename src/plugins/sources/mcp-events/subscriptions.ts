// Keeps the subscriptions of a section alive. What the server has granted is the place of the source, so that a restart, or another gateway, renews and
// ends the same subscriptions.
import { z } from 'zod'
import type { SourceHost } from '../../../define.ts'
import { chooseRetryMs, SourceFailure, tryParseJson } from '../shared/kit.ts'
import type { McpEventsConfig } from './options.ts'
import { callServer, DeliveryProblem, McpFailure, notFound } from './server.ts'

/** A subscription at the server. The server knows it by its name, arguments and callback. */
const Subscription = z.object({
  name: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  callback: z.string(),
  /** When it ends, in milliseconds since the epoch by the clock of the gateway; null if it does not end. */
  endsAt: z.number().nullable(),
  /** Where the server continues if it has lost the subscription. */
  cursor: z.string().nullable(),
})
type Subscription = z.infer<typeof Subscription>
const Place = z.object({ subscriptions: z.array(Subscription) })

/** A longer cursor would not fit into the place of twenty events. */
const maxCursorChars = 1_500
const Grant = z.object({
  refreshBefore: z.iso.datetime({ offset: true }).nullable(),
  cursor: z.string().max(maxCursorChars).nullish(),
  truncated: z.boolean().nullish(),
  deliveryStatus: z.object({ active: z.boolean(), lastError: DeliveryProblem }).nullish().catch(undefined),
})

type Parts = {
  readonly config: McpEventsConfig
  readonly host: Pick<SourceHost, 'place' | 'store' | 'fetch' | 'clock' | 'log' | 'pause'>
  readonly signal: AbortSignal
  /** Called with the current problems, one sentence each, when they may have changed. */
  readonly onProblems: (problems: readonly string[]) => void
}

/** What is done for one subscription: again and again if it is renewed, once if it is ended. */
type Task = {
  readonly name: string
  readonly perform: () => Promise<{ readonly problem?: string | undefined; readonly dueAt: number | undefined }>
  dueAt: number
  failures: number
  problem: string | undefined
}

const minRenewMs = 1_000
/** Subscriptions that last longer are renewed this often too: the answer says whether the server can deliver. */
const maxRenewMs = 12 * 3_600_000

/** Stays until the signal is aborted. */
export async function keepSubscriptions({ config, host, signal, onProblems }: Parts): Promise<never> {
  const { clock, log, store } = host
  let kept = parsePlace(await host.place())
  const wanted = config.events.map((event) => ({ ...event, callback: config.callback }))
  const tasks = new Set<Task>()
  const add = (name: string, perform: Task['perform']) =>
    tasks.add({ name, perform, dueAt: 0, failures: 0, problem: undefined })
  for (const each of wanted) add(each.name, () => renew(each))
  for (const each of kept) {
    if (!wanted.some((other) => isSame(each, other))) add(each.name, () => end(each))
  }
  try {
    for (;;) {
      for (const task of tasks) if (task.dueAt <= clock()) await perform(task)
      const next = Math.min(...[...tasks].map(({ dueAt }) => dueAt))
      await host.pause(Math.max(minRenewMs, next - clock()), signal)
    }
  } finally {
    onProblems([])
  }

  async function perform(task: Task): Promise<void> {
    signal.throwIfAborted()
    const before = task.problem
    try {
      const { problem, dueAt } = await task.perform()
      task.failures = 0
      task.problem = problem
      if (dueAt === undefined) tasks.delete(task)
      else task.dueAt = dueAt
    } catch (thrown) {
      if (!(thrown instanceof CallFailure)) throw thrown
      task.problem = thrown.message
      task.dueAt = clock() + chooseRetryMs(thrown.failure, task.failures)
      task.failures += 1
    }
    if (task.problem !== undefined && task.problem !== before)
      log.error({ event: task.name }, `${task.name}: ${task.problem}`)
    onProblems([...tasks].flatMap(({ name, problem }) => (problem === undefined ? [] : [`${name}: ${problem}`])))
  }

  async function call(method: string, params: object): ReturnType<typeof callServer> {
    try {
      return await callServer(config, { method, params }, { fetch: host.fetch, signal })
    } catch (thrown) {
      signal.throwIfAborted()
      throw thrown instanceof SourceFailure ? new CallFailure(thrown) : thrown
    }
  }

  /** Stores one subscription in place of the one that is the same; `next` undefined: without it. */
  async function keep(one: Identity, next?: Subscription): Promise<void> {
    kept = [...kept.filter((each) => !isSame(each, one)), ...(next === undefined ? [] : [next])]
    await store([], JSON.stringify({ subscriptions: kept }))
  }

  async function renew({ name, arguments: args, callback }: Identity): ReturnType<Task['perform']> {
    const identity = { name, arguments: args, callback }
    const known = kept.find((each) => isSame(each, identity))
    const { result, writtenAt = clock() } = await call('events/subscribe', {
      name,
      arguments: args,
      delivery: { mode: 'webhook', url: callback, secret: toSecret(config.secret) },
      cursor: known?.cursor ?? null,
      ttlMs: config.ttlSeconds * 1_000,
    })
    const { data } = Grant.safeParse(result)
    if (data === undefined)
      throw new CallFailure(new SourceFailure('The server did not answer the subscription as MCP Events says.'))
    const { refreshBefore, cursor = null, truncated, deliveryStatus } = data
    // by the time between two clocks of the server, in case the one of the gateway differs
    const lifeMs = refreshBefore === null ? undefined : Math.max(0, Date.parse(refreshBefore) - writtenAt)
    await keep(identity, { ...identity, endsAt: lifeMs === undefined ? null : clock() + lifeMs, cursor })
    if (known === undefined) log.info({ event: name }, 'the hook is subscribed to the event from now on')
    if (truncated === true) log.warn({ event: name }, 'the server has skipped events that it no longer had')
    const problem =
      deliveryStatus?.active === false
        ? `the server could not deliver to the callback (${deliveryStatus.lastError ?? 'no reason given'}), and tries again now.`
        : undefined
    return {
      problem,
      dueAt: clock() + Math.min(Math.max((lifeMs ?? maxRenewMs * 2) / 2, minRenewMs), maxRenewMs),
    }
  }

  async function end({ endsAt, ...identity }: Subscription): ReturnType<Task['perform']> {
    const { name, arguments: args, callback } = identity
    if (endsAt === null || endsAt > clock()) {
      try {
        await call('events/unsubscribe', { name, arguments: args, delivery: { url: callback } })
      } catch (thrown) {
        const isGone =
          thrown instanceof CallFailure && thrown.failure instanceof McpFailure && thrown.failure.code === notFound
        if (!isGone) throw thrown
      }
      log.info({ event: name }, 'the hook is no longer subscribed to the event')
    }
    await keep(identity)
    return { dueAt: undefined }
  }
}

/** A failure of the server, unlike one of the store, delays only its own subscription. */
class CallFailure extends Error {
  readonly failure: SourceFailure
  constructor(failure: SourceFailure) {
    super(failure.message)
    this.failure = failure
  }
}

/** Throws if the text is no place: to begin again would forget cursors and subscriptions that are to be ended. */
function parsePlace(text: string | undefined): Subscription[] {
  return text === undefined ? [] : Place.parse(tryParseJson(text)).subscriptions
}

type Identity = Pick<Subscription, 'name' | 'arguments' | 'callback'>

const isSame = (one: Identity, other: Identity) => toKey(one) === toKey(other)
const toKey = ({ name, arguments: args, callback }: Identity) => JSON.stringify([name, callback, sortKeys(args)])

/** JSON with the keys of objects in order, as the server compares arguments. */
function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (typeof value !== 'object' || value === null) return value
  return Object.entries(value)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, each]) => [key, sortKeys(each)])
}

/** A key without its prefix is what `hookloom add preset` makes. */
const toSecret = (secret: string) => (secret.startsWith('whsec_') ? secret : `whsec_${secret}`)
