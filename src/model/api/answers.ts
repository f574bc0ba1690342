// The answers of the admin API, as the page in src/inspector and other clients read them. Times are ISO 8601, unless a description says otherwise.
import { z } from 'zod'
import { jobStates } from './job-states.ts'

/** A read-only list. */
export function readonlyList<Item extends z.ZodType>(item: Item) {
  return z.array(item).readonly()
}

export const AnyObject: z.ZodType<object> = z.looseObject({})

export const State = z.enum(['pending', 'parked', 'accepted', 'skipped', 'dropped'])
export type State = z.infer<typeof State>

export const JobState = z.enum(jobStates)
export type JobState = z.infer<typeof JobState>

const Fault = z.object({ code: z.string(), detail: z.string(), frame: z.string().optional() })

export const TriedMapping = z.object({ mappingId: z.string(), matched: z.boolean(), why: z.string() })

export const DeliverySummary = z.object({
  deliveryId: z.string(),
  receivedAt: z.string(),
  hook: z.string(),
  source: z.string().nullable(),
  event: z.string().nullable(),
  mappingId: z.string().nullable(),
  repeats: z.number().describe('How often the delivery was repeated. `repeatedAt`: the last time.'),
  repeatedAt: z.string().nullable(),
  edited: z
    .boolean()
    .describe('True: a copy of another delivery, whose body an operator replaced. It has no proof of a sender.'),
  recovered: z.boolean().describe('True: the gateway fetched it from its sender, because no request brought it.'),
  state: State,
})
export type DeliverySummary = z.infer<typeof DeliverySummary>

/** One delivery in a list. */
export const DeliveryRow = DeliverySummary.extend({
  summary: z
    .string()
    .describe(
      'What the delivery is about, in one line: a line of its message or text, or facts of its payload; the error of a parked, dead or failing one; the reason for a skip.',
    ),
  sourceName: z
    .string()
    .nullable()
    .describe('The name of the source for people, such as "GitHub"; null for an unknown sender.'),
  code: z.string().nullable().describe('The code of its problem.'),
  place: z.string().nullable().describe('`<file>:<line>` of its problem.'),
  became: readonlyList(z.object({ kind: z.string(), sessionKey: z.string() })).describe(
    'The first of its actions. `jobs` counts all of them.',
  ),
  jobs: z
    .record(z.enum([...JobState.options, 'failing']), z.number())
    .describe('Jobs by state. `failing`: queued jobs whose last attempt failed.'),
  doneMs: z
    .number()
    .nullable()
    .describe(
      'Milliseconds until the last step of its jobs, without the time that it was parked; null until all of them are done.',
    ),
  found: z
    .object({ in: z.string(), text: z.string() })
    .optional()
    .describe(
      'Where a search found its text, and the words around it. Missing if the other fields of the row show it, or if it took too long to read.',
    ),
  waits: z
    .string()
    .optional()
    .describe(
      'Why the first of its queued jobs waits, such as "waits until 14:03:10Z for a quiet period". Missing if none is queued.',
    ),
})
export type DeliveryRow = z.infer<typeof DeliveryRow>

export const DeliveryPage = z.object({
  deliveries: readonlyList(DeliveryRow),
  next: z.string().nullable().describe('`before` of the page of older rows; null if there is none.'),
  older: z
    .number()
    .nullable()
    .describe('The number of deliveries that are older than this page; null if a filter would have to visit them.'),
  searchedTo: z
    .string()
    .nullable()
    .describe(
      'Where a search stopped because it took long; the page `next` continues there. Null: the search is complete, or found enough.',
    ),
})
export type DeliveryPage = z.infer<typeof DeliveryPage>

const StepFields = z.object({
  name: z.string(),
  state: z.string(),
  startedAt: z.string().optional().describe('Missing if it ended in the millisecond in which it began.'),
  at: z.string(),
  detail: z.string().nullable(),
  model: z.string().optional(),
  usage: z.object({ inputTokens: z.number(), outputTokens: z.number(), costUsd: z.number().optional() }).optional(),
})

const PostFields = z.object({
  step: z.string().describe('The step that sends it: `deliver`, or for a further recipient `deliver-2` and so on.'),
  part: z.number(),
  channel: z.string(),
  to: z.string().nullable(),
  state: z.string(),
  messageId: z.string().nullable().describe("The provider's id."),
  at: z.string().nullable(),
  nonce: z.string(),
  mayBeTwice: z.boolean(),
  failed: z
    .string()
    .nullable()
    .describe('Only for one of several recipients: why only `hookloom retry` sends it again.'),
})

/** Only for a run whose mapping has `verdicts`. */
export const VerdictFields = z.object({
  verdicts: readonlyList(z.string()).describe('The verdicts that the run can give. The first means success.'),
  verdict: z.string().nullable().describe('Null if the run gave none, or has not ended.'),
  verdictForm: z.enum(['structured-output', 'tool-call', 'last-line']).nullable(),
  verdictRepaired: z.boolean().describe('True if the agent was asked a second time.'),
})
export type VerdictFields = z.infer<typeof VerdictFields>

export const JobFields = VerdictFields.partial().extend({
  jobId: z.string(),
  runId: z.string().nullable().describe('Null for a wake, which has no run.'),
  deliveryId: z.string().nullable(),
  kind: z.string(),
  agentId: z.string(),
  sessionKey: z.string(),
  state: JobState,
  attempts: z.number(),
  lastError: z
    .string()
    .nullable()
    .describe('The error of the last failed attempt; for a run that ended early, the reason.'),
  failingSince: z.string().nullable().describe('When its failures began; null if the last attempt did not fail.'),
  endedBy: z
    .string()
    .nullable()
    .describe('Only for a superseded run: the id of the run that replaced it, or that reads its message.'),
  waits: z
    .string()
    .optional()
    .describe('Why a queued run waits, such as "waits until 14:03:10Z for a quiet period". Missing in other states.'),
  failures: readonlyList(z.object({ at: z.string(), error: z.string() })).describe(
    'The newest failed attempts, in order: at most 12.',
  ),
  steps: readonlyList(StepFields),
  posts: readonlyList(PostFields),
})
export type JobFields = z.infer<typeof JobFields>

/** A run with its texts. `prompt`: the prompt with its boundary; null before the turn has ended. */
export const RunFields = JobFields.extend({
  prompt: z.string().nullable(),
  reply: z.string().nullable(),
  usd: z.number().nullable().describe('The cost of the run. Null: its model has no price, or it has used nothing.'),
})
export type RunFields = z.infer<typeof RunFields>

export const DeliveryFields = DeliverySummary.extend({
  generation: z.string(),
  node: z.string().nullable().describe('The gateway that took it.'),
  actions: readonlyList(AnyObject),
})
export type DeliveryFields = z.infer<typeof DeliveryFields>

export const ShownFields = DeliveryFields.extend({
  transformHash: z.string().nullable(),
  bodyDiffered: z.boolean(),
  settledAt: z.string().nullable(),
  answer: z
    .object({ status: z.number(), body: z.string(), contentType: z.string().optional() })
    .describe('The answer that the sender received.'),
  jobs: readonlyList(JobFields),
  problem: Fault.nullable(),
  trace: readonlyList(TriedMapping),
  log: readonlyList(z.string()),
})
export type ShownFields = z.infer<typeof ShownFields>

/** What a click starts. `usd`: about what it costs, by the last runs of the hook; null without a price. */
const Starts = z.object({ turns: z.number(), usd: z.number().nullable() })

/**
 * What a person can do so that a run waits no longer. `resume`: `POST /api/resume` for `what`. `raise`: `POST /api/budgets/{name}/raise` by `by`. `retry`:
 * `POST /api/deliveries/{id}/retry`, which ends a quiet period.
 */
export const WaitEnd = z.discriminatedUnion('kind', [
  Starts.extend({ kind: z.literal('resume'), what: z.string() }),
  Starts.extend({
    kind: z.literal('raise'),
    budget: z.string(),
    by: z
      .record(z.enum(['usd', 'tokens', 'turns']), z.number().nullable())
      .describe('So much that the turns that wait have room, and at least what the budget has of a new period.'),
  }),
  Starts.extend({ kind: z.literal('retry') }),
])
export type WaitEnd = z.infer<typeof WaitEnd>

export const MadeBy = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('built-in') }),
  z.object({ kind: z.literal('template'), template: z.string().nullable() }),
  z.object({
    kind: z.literal('transform'),
    module: z.string(),
    file: z.string().nullable(),
    line: z.number(),
  }),
])
export type MadeBy = z.infer<typeof MadeBy>

/**
 * One delivery. `admitted`: the credentials that let it in; null if neither its request is kept nor its mapping still exists. `madeBy`: its
 * mapping, as configured now.
 */
export const ShownDelivery = ShownFields.extend({
  sourceName: z.string().nullable(),
  doneMs: DeliveryRow.shape.doneMs,
  admitted: z.object({ token: z.boolean(), scheme: z.string().nullable() }).nullable(),
  madeBy: MadeBy.nullable(),
  isRequestKept: z.boolean(),
  waitEnd: WaitEnd.optional().describe('How the first run that waits can start now. Missing if no call does that.'),
  tasks: readonlyList(JobFields).describe(
    'The tasks that report the ends of its first ten runs: commit statuses and callbacks.',
  ),
})
export type ShownDelivery = z.infer<typeof ShownDelivery>

/**
 * A kept request. `encoding`: the encoding of `body`, which is base64 if it is not UTF-8. `hasSignedId`: the signature covers the id of the
 * delivery, so every copy of the request is a duplicate.
 */
export const RequestFields = z.object({
  method: z.string(),
  url: z.string(),
  headers: z.record(z.string(), z.string()),
  query: z.record(z.string(), z.string()),
  verifiedBy: z.string().nullable(),
  hasSignedId: z.boolean(),
  body: z.string(),
  encoding: z.enum(['utf8', 'base64']),
})
export type RequestFields = z.infer<typeof RequestFields>

/** The data of `event: status` in the stream. */
export const StatusFields = z.object({
  generation: z.string(),
  degraded: z.boolean(),
  held: z.boolean().describe('True: a save waits for `POST /api/publish`.'),
  problems: z.number(),
  lastReloadAt: z.string().nullable(),
  lastSave: z
    .object({ files: readonlyList(z.string()), at: z.string() })
    .nullable()
    .describe(
      'The first files of the last save, by their path below the config directory; null if none was saved since the start.',
    ),
})
export type StatusFields = z.infer<typeof StatusFields>

export const RetryFields = z.object({
  deliveryId: z.string().nullable(),
  state: z.string(),
  jobs: readonlyList(z.string()),
})
export type RetryFields = z.infer<typeof RetryFields>

export const RetriedFields = RetryFields.extend({
  tried: readonlyList(z.string())
    .optional()
    .describe(
      'The failing runs whose next attempt is due now; missing if there is none. `jobs`: the dead runs that are queued again.',
    ),
})
export type RetriedFields = z.infer<typeof RetriedFields>
