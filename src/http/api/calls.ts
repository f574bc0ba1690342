// The calls of the admin API and of the run resource, with the schemas of their bodies and answers. The OpenAPI document is made from them, and the
// tests check the answers by them.
import { z } from 'zod'
import * as answers from '../../model/api/answers.ts'
import { AuditPage, WrittenFile } from '../../model/api/audit.ts'
import * as bench from '../../model/api/bench.ts'
import { FindingFields, HealthFields, OutletsFields } from '../../model/api/health.ts'
import * as operations from '../../model/api/operations.ts'
import { RefusalFields } from '../../model/api/refusals.ts'
import { CapturedFields, ReplayReport, ShadowFields, UpdatedFixtures } from '../../model/api/replay.ts'
import { RunResource } from '../../model/api/run.ts'
import * as sessions from '../../model/api/sessions.ts'
import { CoverageFields, LearntPaths, ShapeFields } from '../../model/api/shapes.ts'
import type { AdminRight } from '../../model/config/tokens.ts'
import { AnyTryBody, FixtureBody, TemplateBody, TypedBody } from './bench.ts'
import { EditedBody } from './deliveries.ts'
import { ProofQuestion } from './page.ts'
import { AskedChange, AskedPause } from './pauses.ts'
import { FixtureOptions } from './replays.ts'
import { NewToken } from './tokens.ts'

export type Call = {
  readonly port: 'hooks' | 'admin'
  readonly method: 'get' | 'post' | 'delete'
  /** The path, with `{name}` for parameters. On the hook port, it is the part after `hooks.path`. */
  readonly path: string
  readonly summary: string
  /** The right that the token needs. `none`: the call needs no token. */
  readonly right: AdminRight | 'runs' | 'none'
  /** The query parameters, with their meaning. */
  readonly query?: Readonly<Record<string, string>>
  readonly body?: z.ZodType
  readonly isBodyOptional?: boolean
  /** The schema of the answer, without `ok`, which every answer has. Undefined: the answer is a stream of events. */
  readonly answer?: z.ZodType
}

const { object, string, number } = z
const list = answers.readonlyList
const limit = { limit: 'The number of rows: 100, at most 500.' }
const older = { ...limit, before: '`next` of the answer before, for older rows.' }
const since = { since: 'Only what came then or later, in ISO 8601.' }
const range = { ...since, until: 'Only what came before, in ISO 8601.' }
const hook = { hook: 'Only of this hook.' }
const after = { after: '`next` of the answer before.' }
const last = { last: 'The number of deliveries: 50 if it is not given.' }
const session = { agentId: 'The agent of the session; the default agent if it is not given.' }
const amounts = { usd: 'US dollars to add.', tokens: 'Tokens to add.', turns: 'Turns to add.' }
const state = { module: 'Only of this module.', key: 'Only this value.' }
const Until = object({ until: string() })

const read = (path: string, summary: string, answer: z.ZodType | undefined, query: Call['query'] = {}): Call => ({
  port: 'admin',
  method: 'get',
  right: 'read',
  path,
  summary,
  query,
  ...(answer && { answer }),
})

const change = (
  right: Call['right'],
  path: string,
  summary: string,
  answer: z.ZodType,
  rest: Pick<Call, 'query' | 'body' | 'isBodyOptional'> & { readonly method?: 'delete' } = {},
): Call => ({ port: 'admin', method: 'post', right, path, summary, answer, ...rest })

const runPath = '/runs/{runId}'
const run: Omit<Call, 'method' | 'summary'> = { port: 'hooks', path: runPath, right: 'runs', answer: RunResource }

export const calls: readonly Call[] = [
  {
    ...run,
    method: 'get',
    summary: 'Shows a run that this token started. With "Accept: text/event-stream" it sends each change.',
  },
  { ...run, method: 'delete', summary: 'Cancels a run that this token started.' },

  read('/api/deliveries', 'Lists deliveries, the newest last.', answers.DeliveryPage, {
    ...older,
    ...hook,
    source: 'Only of this sender.',
    state: 'Only in this state, or `dead`: with a dead run.',
    q: 'Only with this text.',
    ...range,
  }),
  read('/api/deliveries/{id}', 'Shows one delivery with its jobs and its trace.', answers.ShownDelivery),
  read('/api/deliveries/{id}/request', 'Shows the request of a delivery, while it is kept.', answers.RequestFields),
  change('operate', '/api/deliveries/{id}/retry', 'Runs a parked delivery or dead runs again.', answers.RetryFields),
  change(
    'operate',
    '/api/deliveries/{id}/drop',
    'Drops what a delivery still has to do.',
    object({ deliveryId: string(), state: string() }),
  ),
  change(
    'operate',
    '/api/deliveries/{id}/again',
    'Makes a new delivery from the same request. With a body, it needs the right `admin`.',
    answers.RetryFields,
    {
      body: EditedBody,
      isBodyOptional: true,
    },
  ),
  change('admin', '/api/deliveries/{id}/capture', 'Makes a fixture of a kept request.', CapturedFields, {
    body: FixtureOptions,
    isBodyOptional: true,
  }),
  change('operate', '/api/parked/retry', 'Runs parked deliveries again.', operations.RetriedParked, {
    query: { ...hook, ...after },
  }),
  change('operate', '/api/parked/drop', 'Drops parked deliveries.', operations.DroppedParked, {
    query: { ...hook, ...after },
  }),
  read('/api/stream', 'Sends deliveries, refusals and the status as server-sent events.', undefined),
  read('/api/runs/{id}', 'Shows one run with its prompt and its reply.', answers.RunFields),
  change('operate', '/api/runs/{id}', 'Cancels a run.', operations.CancelledFields, {
    method: 'delete',
    query: { by: 'Who cancels it. Only without a body.', reason: 'Why. Only without a body.' },
    body: AskedChange.omit({ what: true }),
    isBodyOptional: true,
  }),
  change('operate', '/api/cancel', 'Cancels the runs of a delivery, a session or a key.', operations.CancelledFields, {
    body: AskedChange,
  }),
  read('/api/pauses', 'Lists what keeps runs back.', object({ pauses: list(operations.PauseFields) })),
  change('operate', '/api/pauses', 'Pauses runs.', object({ pause: operations.PauseFields.nullable() }), {
    body: AskedPause,
  }),
  change('operate', '/api/resume', 'Ends a pause.', object({ what: string() }), { body: AskedChange }),
  read('/api/sessions', 'Lists the sessions, the newest last.', sessions.SessionPage, older),
  read('/api/sessions/{key}', 'Shows one session with its newest messages.', sessions.ShownSession, session),
  change('operate', '/api/sessions/{key}/trim', 'Deletes the older messages of a session.', sessions.TrimmedSession, {
    query: { ...session, keep: 'The number of exchanges (a prompt with its reply) that stay.' },
  }),
  read('/api/events', 'Lists the system events, the newest last.', sessions.EventPage, older),
  read('/api/budgets', 'Lists the budgets.', object({ budgets: list(operations.BudgetFields) })),
  change(
    'operate',
    '/api/budgets/{name}/raise',
    'Adds to a budget until its period ends.',
    object({ budget: operations.BudgetFields }),
    { query: amounts },
  ),
  read('/api/state', 'Lists what transforms remember.', object({ state: list(operations.StateValueFields) }), {
    module: state.module,
  }),
  change('admin', '/api/writes', 'Notes in the audit log what a tool wrote to files.', object({}), {
    body: WrittenFile,
  }),
  change('operate', '/api/state/drop', 'Deletes what a transform remembers.', object({ dropped: number() }), {
    query: state,
  }),
  read('/api/audit', 'Lists who changed what, the newest first.', AuditPage, { ...older, ...since }),
  read('/api/tokens', 'Lists the tokens with few rights.', object({ tokens: list(operations.TokenFields) })),
  change('admin', '/api/tokens', 'Makes a token.', operations.TokenFields.extend({ token: string() }), {
    body: NewToken,
  }),
  change('admin', '/api/tokens/{name}/revoke', 'Ends a token of the store.', object({ name: string() })),
  read('/api/health', 'Shows what is live, what is broken and what waits.', HealthFields),
  read(
    '/api/outlets',
    'Shows each model and channel with its last success, and what the heartbeats of a day used.',
    OutletsFields,
  ),
  change(
    'admin',
    '/api/doctor',
    'Looks for what is wrong, as hookloom doctor does.',
    object({ findings: list(FindingFields) }),
  ),
  read('/api/senders', 'Lists the senders.', object({ senders: list(operations.SenderFields) })),
  read('/api/attention', 'Lists what needs a person, by its cause.', operations.AttentionFields),
  read('/api/refusals', 'Lists the refused requests, oldest first.', object({ refusals: list(RefusalFields) }), {
    ...hook,
    limit: 'Only the newest of them: at most 500.',
  }),
  read(
    '/api/refusals/{id}',
    'Shows one refused request.',
    object({ refusal: RefusalFields, request: answers.AnyObject.nullable() }),
  ),
  change('operate', '/api/refusals/retry', 'Verifies kept requests again, and runs them.', operations.RetriedRefused, {
    query: { ...hook, ...since, ...after, dryRun: 'If it is given, nothing runs.' },
  }),
  change('operate', '/api/refusals/drop', 'Deletes kept requests.', operations.DroppedRefused, {
    query: { ...hook, ...since, ...after },
  }),
  change('operate', '/api/recover', 'Asks senders for what did not arrive.', operations.RecoverFields, {
    query: { name: 'Only the mapping with this id.', ...since, dryRun: '`true`: nothing is stored.' },
  }),
  read('/api/recover', 'Shows what the last call found.', operations.RecoverFields),
  change('operate', '/api/alerts/test', 'Sends a test alert.', operations.TestAlertFields),
  read('/api/alerts/test/{id}', 'Shows whether a test alert arrived.', operations.TestAlertFields),
  change('operate', '/api/replay', 'Compares the files on disk with the live code.', ReplayReport, {
    query: {
      ...last,
      ...hook,
      source: 'Only of this sender.',
      ...since,
      ids: 'Only these deliveries: up to 25 ids, with commas between them.',
    },
  }),
  change(
    'operate',
    '/api/replay/live',
    'Decides on kept deliveries with the live code.',
    object({ outcomes: z.record(string(), answers.AnyObject) }),
    { query: { ids: 'Up to 100 ids, with commas between them.' } },
  ),
  change(
    'operate',
    '/api/coverage',
    'Shows which code of a module its fixtures and kept requests run.',
    CoverageFields,
    {
      query: { module: 'The module, as a mapping names it.' },
    },
  ),
  read(
    '/api/shadows',
    'Shows how the shadows of transforms differ from the live code.',
    object({ shadows: list(ShadowFields) }),
  ),
  change('admin', '/api/publish', 'Makes a save live that was held back.', object({ generation: string() })),
  read('/api/hooks', 'Lists the hooks.', bench.HooksFields),
  read(
    '/api/samples',
    'Lists requests with which a hook can be tried.',
    object({ samples: list(bench.SampleFields) }),
    {
      hook: 'The hook.',
    },
  ),
  read(
    '/api/shapes',
    'Lists the events that came in, and what changed in their payloads.',
    object({ shapes: list(ShapeFields) }),
    {
      ...hook,
      since: 'Only changes since then, in ISO 8601.',
    },
  ),
  read('/api/paths', 'Lists the paths that templates of a hook can read.', LearntPaths, {
    hook: 'The hook.',
    mappingId: 'Only of the requests that the mapping with this id may get.',
  }),
  change(
    'operate',
    '/api/try',
    'Shows what would become of a request.',
    z.union([bench.TriedFields, bench.TriedDraft]),
    { body: AnyTryBody },
  ),
  change('admin', '/api/send', 'Sends a request to a hook.', bench.SentFields, { body: TypedBody }),
  change('admin', '/api/fixtures', 'Makes a fixture of a request.', CapturedFields.omit({ deliveryId: true }), {
    body: FixtureBody,
  }),
  change('admin', '/api/fixtures/update', 'Writes the results of fixtures as what they expect.', UpdatedFixtures, {
    body: FixtureOptions,
  }),
  change('admin', '/api/mappings', 'Saves a template, in development.', bench.SavedMappingFields, {
    body: TemplateBody,
  }),
  change('admin', '/api/transforms', 'Makes a transform of a request, in development.', bench.MadeTransformFields, {
    body: TypedBody,
  }),
  change(
    'admin',
    '/api/mappings/{id}/arm',
    'Lets a mapping take the secret of its sender.',
    Until.extend({ mappingId: string() }),
  ),
  change('admin', '/api/page/code', 'Makes a code that opens the page.', Until.extend({ code: string() })),
  change(
    'none',
    '/api/page/key',
    'Exchanges a code, sent as a Bearer token, for a key.',
    Until.extend({ key: string() }),
  ),
  change('none', '/api/page/proof', 'Proves that the gateway made a key.', object({ proof: string() }), {
    body: ProofQuestion,
  }),
]
