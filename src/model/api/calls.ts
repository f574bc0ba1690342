// The calls of the API, each declared once. From here come the routes of the admin port, the check of rights, the audit log, the OpenAPI document,
// and the types of handlers and clients. `ask.ts` makes requests of them.
import { z } from 'zod'
import * as answers from './answers.ts'
import { AuditCheck, AuditPage, SaveFields } from './audit.ts'
import * as bench from './bench.ts'
import * as bodies from './bodies.ts'
import { administer, type Call, operate, read, openToAll } from './call.ts'
import { FindingFields, HealthFields, OutletsFields } from './health.ts'
import * as operations from './operations.ts'
import { RefusalFields } from './refusals.ts'
import { CapturedFields, ReplayReport, ShadowFields, UpdatedFixtures } from './replay.ts'
import * as sessions from './sessions.ts'
import { SpendingFields } from './spending.ts'
import { CoverageFields, LearntPaths, ShapeFields } from './shapes.ts'

/** Every call that is no GET says whether it is an act. */
type Calls = { readonly [Name in `GET /api/${string}`]: Call & { readonly right: 'read'; readonly act: null } } & {
  readonly [Name in `${'POST' | 'DELETE'} /api/${string}`]: Call
}

const { object, string, number } = z
const list = answers.readonlyList
const limit = { limit: 'The number of rows: 100, at most 500.' }
const older = { ...limit, before: '`next` of the answer before, for older rows.' }
const since = { since: 'Only what came then or later, in ISO 8601.' }
const hook = { hook: 'Only of this hook.' }
const source = { source: 'Only of this sender.' }
const after = { after: '`next` of the answer before.' }
const session = { agentId: 'The agent of the session; the default agent if it is not given.' }
const module = { module: 'Only of this module.' }
const until = { until: string() }

export const calls = {
  'GET /api/deliveries': read('Lists deliveries, the newest last.', answers.DeliveryPage, {
    ...older,
    ...hook,
    ...source,
    state: 'Only in this state, or `dead`: with a dead run, or `waiting`: not ended.',
    q: 'Only with this text.',
    ...since,
    until: 'Only what came before, in ISO 8601.',
  }),
  'GET /api/deliveries/{id}': read('Shows one delivery with its jobs and its trace.', answers.ShownDelivery),
  'GET /api/deliveries/{id}/request': read('Shows the request of a delivery, while it is kept.', answers.RequestFields),
  'POST /api/deliveries/{id}/retry': operate(
    'retry',
    'Runs a parked delivery or dead runs again, and makes runs due that fail or are in a quiet period.',
    answers.RetriedFields,
  ),
  'POST /api/deliveries/{id}/drop': operate(
    'drop',
    'Drops what a delivery still has to do.',
    object({ deliveryId: string(), state: string() }),
  ),
  'POST /api/deliveries/{id}/again': operate(
    'again',
    'Makes a new delivery from the same request. With a body, it needs the right `admin`.',
    answers.RetryFields,
    {
      // another body under the name of the sender would be a forgery
      rightWithBody: 'admin',
      body: bodies.editedBody,
    },
  ),
  'POST /api/deliveries/{id}/capture': administer('capture', 'Makes a fixture of a kept request.', CapturedFields, {
    body: bodies.fixtureOptions,
  }),
  'POST /api/parked/retry': operate('retry.parked', 'Runs parked deliveries again.', operations.RetriedParked, {
    query: { ...hook, ...after },
  }),
  'POST /api/parked/drop': operate('drop.parked', 'Drops parked deliveries.', operations.DroppedParked, {
    query: { ...hook, ...after },
  }),
  'GET /api/stream': read('Sends deliveries, refusals and the status as server-sent events.', undefined),
  'GET /api/runs/{id}': read('Shows one run with its prompt and its reply.', answers.RunFields),
  'GET /api/runs/{id}/reply': read(
    'Shows the reply so far of a run that this gateway runs now.',
    object({
      text: string().nullable().describe('Null: it runs elsewhere, its runner does not stream, or it has ended.'),
    }),
  ),
  'DELETE /api/runs/{id}': operate('cancel', 'Cancels a run.', operations.CancelledFields, {
    query: { by: 'Who cancels it. Only without a body.', reason: 'Why. Only without a body.' },
    body: bodies.askedCancel,
  }),
  'POST /api/cancel': operate(
    'cancel',
    'Cancels the runs of a delivery, a session or a key.',
    operations.CancelledFields,
    { body: bodies.askedChange },
  ),
  'GET /api/pauses': read('Lists what keeps runs back.', object({ pauses: list(operations.PauseFields) })),
  'POST /api/pauses': operate('pause', 'Pauses runs.', object({ pause: operations.PauseFields.nullable() }), {
    body: bodies.askedPause,
  }),
  'POST /api/resume': operate('resume', 'Ends a pause.', object({ what: string() }), {
    body: bodies.askedChange,
  }),
  'GET /api/sessions': read('Lists the sessions, the newest last.', sessions.SessionPage, older),
  'GET /api/sessions/{key}': read('Shows one session with its newest messages.', sessions.ShownSession, session),
  'POST /api/sessions/{key}/trim': operate(
    'session.trim',
    'Deletes the older messages of a session.',
    sessions.TrimmedSession,
    { query: { ...session, keep: 'The number of exchanges (a prompt with its reply) that stay.' } },
  ),
  'GET /api/events': read('Lists the system events, the newest last.', sessions.EventPage, older),
  'GET /api/budgets': read('Lists the budgets.', object({ budgets: list(operations.BudgetFields) })),
  'POST /api/budgets/{name}/raise': operate(
    'budget.raise',
    'Adds to a budget until its period ends.',
    object({ budget: operations.BudgetFields }),
    { query: { usd: 'US dollars to add.', tokens: 'Tokens to add.', turns: 'Turns to add.' } },
  ),
  'GET /api/spending': read('Shows what the runs of a time cost, by day, hook, agent and model.', SpendingFields, {
    since: 'The beginning of the first day, in ISO 8601: 24 hours ago if it is not given, at most 31 days ago.',
  }),
  'GET /api/state': read(
    'Lists what transforms remember.',
    object({ state: list(operations.StateValueFields) }),
    module,
  ),
  'POST /api/writes': administer('file.write', 'Notes in the audit log what a tool wrote to files.', object({}), {
    body: bodies.writtenFile,
  }),
  'POST /api/state/drop': operate('state.drop', 'Deletes what a transform remembers.', object({ dropped: number() }), {
    query: { ...module, key: 'Only this value.' },
  }),
  'GET /api/audit': read('Lists who changed what, the newest first.', AuditPage, {
    ...older,
    ...since,
    by: 'Only of the actor with this name.',
    act: 'Only these acts, with commas between their names.',
  }),
  'GET /api/audit/check': read('Checks the hashes of the whole audit log.', AuditCheck),
  // code, as the coverage of a module shows it
  'POST /api/audit/{number}/save': operate(null, 'Shows which files a save of the log changed.', SaveFields),
  'GET /api/tokens': read('Lists the tokens with few rights.', object({ tokens: list(operations.TokenFields) })),
  'POST /api/tokens': administer('token.new', 'Makes a token.', operations.TokenFields.extend({ token: string() }), {
    // a key of the page must not make a token that outlives it
    isForTokens: true,
    body: bodies.newToken,
  }),
  'POST /api/tokens/{name}/revoke': administer(
    'token.revoke',
    'Ends a token of the store.',
    object({ name: string() }),
  ),
  'GET /api/health': read('Shows what is live, what is broken and what waits.', HealthFields),
  'GET /api/outlets': read(
    'Shows each model and channel with its last success, and what the heartbeats of a day used.',
    OutletsFields,
  ),
  'POST /api/doctor': administer(
    null,
    'Looks for what is wrong, as hookloom doctor does.',
    object({ findings: list(FindingFields) }),
  ),
  'GET /api/senders': read('Lists the senders.', object({ senders: list(operations.SenderFields) })),
  'GET /api/attention': read('Lists what needs a person, by its cause.', operations.AttentionFields),
  'POST /api/attention/end': operate(
    'attention.end',
    'Ends the refusals of a hook with one cause, until the next one.',
    object({ ended: number() }),
    { query: { hook: 'The hook.', code: 'The code of the refusals.' } },
  ),
  'GET /api/refusals': read('Lists the refused requests, oldest first.', object({ refusals: list(RefusalFields) }), {
    ...hook,
    limit: 'Only the newest of them: at most 500.',
  }),
  'GET /api/refusals/{id}': read(
    'Shows one refused request.',
    object({ refusal: RefusalFields, request: answers.AnyObject.nullable() }),
  ),
  'POST /api/refusals/retry': operate(
    'retry.refused',
    'Verifies kept requests again, and runs them.',
    operations.RetriedRefused,
    { query: { ...hook, ...since, ...after, dryRun: 'If it is given, nothing runs.' } },
  ),
  'POST /api/refusals/drop': operate('drop.refused', 'Deletes kept requests.', operations.DroppedRefused, {
    query: { ...hook, ...since, ...after },
  }),
  'POST /api/recover': operate('recover', 'Asks senders for what did not arrive.', operations.RecoverFields, {
    query: { name: 'Only the mapping with this id.', ...since, dryRun: '`true`: nothing is stored.' },
  }),
  'GET /api/recover': read('Shows what the last call found.', operations.RecoverFields),
  'POST /api/alerts/test': operate('alert.test', 'Sends a test alert.', operations.TestAlertFields),
  'GET /api/alerts/test/{id}': read('Shows whether a test alert arrived.', operations.TestAlertFields),
  'POST /api/replay': operate(null, 'Compares the files on disk with the live code.', ReplayReport, {
    query: {
      last: 'The number of deliveries: 50 if it is not given.',
      ...hook,
      ...source,
      ...since,
      ids: 'Only these deliveries: up to 25 ids, with commas between them.',
    },
  }),
  'POST /api/replay/live': operate(
    null,
    'Decides on kept deliveries with the live code.',
    object({ outcomes: z.record(string(), answers.AnyObject) }),
    { query: { ids: 'Up to 100 ids, with commas between them.' } },
  ),
  'POST /api/coverage': operate(
    null,
    'Shows which code of a module its fixtures and kept requests run.',
    CoverageFields,
    { query: { module: 'The module, as a mapping names it.' } },
  ),
  'GET /api/shadows': read(
    'Shows how the shadows of transforms differ from the live code.',
    object({ shadows: list(ShadowFields) }),
  ),
  'POST /api/publish': administer('publish', 'Makes a save live that was held back.', object({ generation: string() })),
  'GET /api/hooks': read('Lists the hooks.', bench.HooksFields),
  'GET /api/samples': read(
    'Lists requests with which a hook can be tried.',
    object({ samples: list(bench.SampleFields), code: list(bench.ModuleText) }),
    { hook: 'The hook.' },
  ),
  'GET /api/shapes': read(
    'Lists the events that came in, and what changed in their payloads.',
    object({ shapes: list(ShapeFields) }),
    { ...hook, since: 'Only changes since then, in ISO 8601.' },
  ),
  'GET /api/paths': read('Lists the paths that templates of a hook can read.', LearntPaths, {
    hook: 'The hook.',
    mappingId: 'Only of the requests that the mapping with this id may get.',
  }),
  'POST /api/try': operate(
    null,
    'Shows what would become of a request. Unsaved code runs under `hookloom dev` only, and needs the right `admin`.',
    z.union([bench.TriedFields, bench.TriedDraft]),
    { body: bodies.tried },
  ),
  'POST /api/try/kept': operate(
    null,
    'Compares an unsaved template, and unsaved code, with the live code, on kept requests.',
    bench.DraftReport,
    { body: bodies.draftReplay },
  ),
  'POST /api/send': administer('send', 'Sends a request to a hook.', bench.SentFields, {
    body: bodies.typedRequest,
  }),
  'POST /api/fixtures': administer(
    'fixture',
    'Makes a fixture of a request.',
    CapturedFields.omit({ deliveryId: true }),
    { body: bodies.typedFixture },
  ),
  'POST /api/fixtures/update': administer(
    'fixture.update',
    'Writes the results of fixtures as what they expect.',
    UpdatedFixtures,
    { body: { ...bodies.fixtureOptions, isOptional: false } },
  ),
  'POST /api/mappings': administer('mapping', 'Saves a template, in development.', bench.SavedMappingFields, {
    body: bodies.template,
  }),
  'POST /api/transforms': administer(
    'transform',
    'Makes a transform of a request, in development.',
    bench.MadeTransformFields,
    { body: bodies.typedRequest },
  ),
  'POST /api/mappings/{id}/arm': administer(
    'secret.arm',
    'Lets a mapping take the secret of its sender.',
    object({ ...until, mappingId: string() }),
  ),
  'POST /api/page/code': administer(
    'page.code',
    'Makes a code that opens the page.',
    object({ ...until, code: string() }),
    {
      // if a key of the page could make further keys, access would never expire
      isForTokens: true,
    },
  ),
  'POST /api/page/key': openToAll(
    null,
    'Exchanges a code or a token with the right `read`, sent as a Bearer token, for a key of the page.',
    object({ ...until, key: string() }),
  ),
  'POST /api/page/proof': openToAll(null, 'Proves that the gateway made a key.', object({ proof: string() }), {
    body: bodies.proofQuestion,
  }),
} as const satisfies Calls
