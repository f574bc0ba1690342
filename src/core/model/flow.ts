// The section `flow` of a mapping: which of its turns run, when, and how many at the same time. Also `limits`, which mappings share.
import { z } from 'zod'
import { type ConfigIssue, type ConfigPath, toIssue } from './issue.ts'
import { Alternative } from './match.ts'
import { duration, nonBlank } from './values.ts'

const longestMs = 31 * 86_400_000
const period = duration.refine((ms) => ms >= 1_000 && ms <= longestMs, 'must be from 1s to 31d')
const count = z.int().min(1).max(100_000)
const priorities = { low: -300, normal: 0, high: 600 } as const

/** What a newer request does if older requests with the same key wait or run. */
const OnNew = z.enum(['queue', 'skip', 'replace', 'gather'])

const Priority = z.union([z.enum(['low', 'normal', 'high']), z.number().min(-86_400).max(86_400)])

const fields = {
  key: nonBlank
    .optional()
    .describe('Template. Requests of the mapping with the same key belong together. Default: the session key.'),
  onNew: OnNew.default('queue').describe(
    'What a newer request of the key does. queue: it waits for the older ones. skip: it makes no turn while another one of the key waits or runs. replace: it ends the older turns, also the one that runs. gather: one turn reads all messages that wait.',
  ),
  delay: duration
    .default(0)
    .describe(
      'A quiet period before the turn, such as 30s or 5m. Each newer request of the key begins it again, until `maxDelay`. A plain number is minutes.',
    ),
  maxDelay: duration
    .optional()
    .describe('The longest time that newer requests can delay a turn. Default: ten times `delay`.'),
  perKey: count
    .default(1)
    .describe(
      'Turns of one key at the same time. A session has one turn at a time, whatever this is; only isolated runs that fall back to `hooks.defaultSessionKey` do not wait for each other.',
    ),
  total: count
    .optional()
    .describe('Turns of the mapping at the same time. Without it, `agents.defaults.maxConcurrent` limits them.'),
  limits: z
    .array(nonBlank)
    .max(3)
    .default([])
    .describe('Names of `limits` that the turn needs, at most three. It starts when all of them have room.'),
  priority: Priority.default('normal').describe(
    'Head start before turns of other keys and mappings: low is -300 seconds, normal 0, high 600, or a number of seconds.',
  ),
  expires: period
    .optional()
    .describe('A turn that has not started within this time after its request never starts, and ends as expired.'),
  maxQueued: count
    .optional()
    .describe('The maximum number of turns of a key that wait. `onFull` says what happens to the next one.'),
  onFull: z
    .enum(['dropOldest', 'refuse'])
    .default('dropOldest')
    .describe(
      'What happens to a new request when `maxQueued` turns of its key are waiting. dropOldest: the oldest waiting turn is dropped. refuse: the request gets 503 with Retry-After, and nothing is stored.',
    ),
  rateLimit: z
    .strictObject({
      limit: count.describe('Turns that start in a period.'),
      period: period.describe('Length of the sliding window.'),
      key: nonBlank
        .optional()
        .describe('Template. Turns with the same value count together. Default: all turns of the mapping.'),
    })
    .optional()
    .describe('The maximum number of turns in a period. A turn beyond it is recorded as skipped.'),
} as const

/** The reason why a run ended before it started: a value of `onNew`, or a key of the section. */
export type FlowEnd = 'replace' | 'gather' | 'skip' | 'cancelOn' | 'expires' | 'rateLimit' | 'maxQueued'

/** The section as written in a mapping. Templates are rendered once, when the request is accepted. */
export const Flow = z.strictObject({
  ...fields,
  cancelOn: Alternative.optional().describe(
    'Conditions. A request to the hook that matches them ends the turns of its key, and makes none. `match` need not match it, except for its path, source and headers.',
  ),
})
export type Flow = z.infer<typeof Flow>

/** The section as a transform returns it, and as it is configured for the built-in hook `agent`, whose callers name what they cancel. */
export const ReturnedFlow = z.strictObject(fields)

const Limit = z.strictObject({
  total: count.optional().describe('Turns at the same time.'),
  perKey: count.optional().describe('Turns of one key at the same time, over all mappings that use the limit.'),
  starts: z
    .strictObject({
      limit: count.describe('Turns that start in a period. A retry counts too.'),
      period: period.describe('Length of the sliding window.'),
      burst: count
        .optional()
        .describe('Turns that may start at once; the others are spread over the period. Default: `limit`.'),
    })
    .optional()
    .describe('The maximum number of starts in a period. Turns beyond it wait.'),
})
type Limit = z.infer<typeof Limit>
export type SharedLimits = Readonly<Record<string, Limit>>
export const SharedLimits = z
  .record(nonBlank, Limit)
  .default({})
  .describe(
    'Limits that mappings and agents share, by name: `flow.limits` and `agents.list[].limits` name them. They count over all gateways on the store. A provider that answers 429 with Retry-After pauses the limit that has its name, or the name of the model.',
  )

/** The settings that are stored with a job. Times are milliseconds. */
export type FlowSettings = Pick<Flow, 'onNew' | 'perKey' | 'total' | 'limits' | 'maxQueued'> & {
  readonly delayMs: number
  readonly maxDelayMs: number
  readonly headStartMs: number
  /** `name`: turns with the same name count together. */
  readonly rate?: { readonly name: string; readonly limit: number; readonly periodMs: number } | undefined
}

/** The flow of one action. `ring`: the name of the mapping in the store. */
export type PlannedFlow = {
  readonly ring: string
  readonly key: string
  readonly expiresMs: number | undefined
  readonly settings: FlowSettings
  /** If this many turns of the key wait, the request is refused and not stored. */
  readonly refusesAt?: number | undefined
}

/** The value of `refusesAt` of a planned flow. */
export function findRefusalCount({ onFull, maxQueued }: Pick<Flow, 'onFull' | 'maxQueued'>): number | undefined {
  return onFull === 'refuse' ? maxQueued : undefined
}

/** `rateKey`: the rendered key of the rate limit. */
export function toFlowSettings(flow: Flow, { ring, rateKey }: { ring: string; rateKey: string }): FlowSettings {
  const { onNew, perKey, total, limits, maxQueued, onFull, delay, maxDelay = 10 * delay, priority, rateLimit } = flow
  return {
    onNew,
    // the new turn starts after the end of the old one
    perKey: onNew === 'replace' || onNew === 'gather' ? 1 : perKey,
    total,
    limits,
    maxQueued: onFull === 'refuse' ? undefined : maxQueued,
    delayMs: delay,
    maxDelayMs: maxDelay,
    headStartMs: 1_000 * (typeof priority === 'number' ? priority : priorities[priority]),
    rate: rateLimit && {
      name: `rate:${JSON.stringify([ring, rateKey])}`,
      limit: rateLimit.limit,
      periodMs: rateLimit.period,
    },
  }
}

/**
 * Whether a template of the key reads something that belongs to the event. `path` and `source` are the same for all events of a sender, and `now`
 * is the time.
 */
function hasDistinctKeys(key: string | undefined): boolean {
  const read = [...(key ?? '').matchAll(/\{\{\s*([^\s|}]+)/g)].map(([, name = '']) => name)
  return read.some((name) => !['path', 'source', 'now'].includes(name))
}

/** `sessionKey`: the template of the mapping, which is the default of the key. */
export function findFlowIssues(
  { flow, sessionKey, action }: { flow?: Flow | undefined; sessionKey?: string | undefined; action: string },
  limits: SharedLimits,
  at: ConfigPath,
): ConfigIssue[] {
  if (flow === undefined) return []
  const { onNew, key = sessionKey, cancelOn, delay, maxDelay, expires, perKey, onFull, maxQueued } = flow
  const isDistinct = hasDistinctKeys(key)
  const issues: ConfigIssue[] = []
  if (action === 'deliver' && onNew === 'gather')
    issues.push(
      toIssue(
        [...at, 'onNew'],
        'is "gather", and without an agent nobody reads several messages in one turn. Use "replace" to send the newest.',
      ),
    )
  if (action === 'wake')
    issues.push(toIssue(at, 'is only for the actions "agent" and "deliver": a wake is an event, and makes no turn.'))
  if (maxDelay !== undefined && delay === 0)
    issues.push(toIssue([...at, 'maxDelay'], 'needs delay: without a quiet period, nothing delays a turn.'))
  else if (maxDelay !== undefined && maxDelay <= delay)
    issues.push(
      toIssue([...at, 'maxDelay'], 'must be greater than delay. Without it, the delay can last ten times as long.'),
    )
  if (expires !== undefined && expires <= delay)
    issues.push(toIssue([...at, 'expires'], 'must be greater than delay, or each turn expires before it may start.'))
  if (perKey > 1 && (onNew === 'replace' || onNew === 'gather'))
    issues.push(
      toIssue(
        [...at, 'perKey'],
        `must be 1 with "${onNew}": the next turn of a key starts after the end of the last one.`,
      ),
    )
  if (onFull === 'refuse' && maxQueued === undefined)
    issues.push(toIssue([...at, 'onFull'], 'is "refuse", so maxQueued must say how many turns of a key may wait.'))
  const example = 'Set it to a template of the payload, such as "pr:{{pull_request.id}}".'
  if (onNew === 'replace' && !isDistinct)
    issues.push(
      toIssue(
        [...at, 'key'],
        `must tell requests apart: with "replace", each request would end the turn of every other one. ${example}`,
      ),
    )
  if (cancelOn !== undefined && !isDistinct)
    issues.push(
      toIssue(
        [...at, 'key'],
        `must tell requests apart: a request that matches cancelOn would end every turn. ${example}`,
      ),
    )
  if (cancelOn !== undefined && Object.keys(cancelOn).length === 0)
    issues.push(
      toIssue(
        [...at, 'cancelOn'],
        'must have at least one condition, or every request would end the turns of its key.',
      ),
    )
  return [...issues, ...findLimitIssues(flow, limits, at)]
}

/** Reports each name in `limits` of a flow or an agent that does not exist, or that the list has twice. */
export function findLimitIssues(
  { limits: names = [] }: { readonly limits?: readonly string[] | undefined },
  limits: SharedLimits,
  at: ConfigPath,
): ConfigIssue[] {
  return names.flatMap((name, index) => {
    if (names.indexOf(name) < index) return [toIssue([...at, 'limits', index], `names "${name}" a second time.`)]
    if (Object.hasOwn(limits, name)) return []
    const known = Object.keys(limits).map((each) => `"${each}"`)
    const next = known.length === 0 ? 'There are none: add it there.' : `It has ${known.join(', ')}.`
    return [toIssue([...at, 'limits', index], `is not a name in limits. ${next}`)]
  })
}
