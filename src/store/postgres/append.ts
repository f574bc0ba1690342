// New deliveries: one statement stores a batch with its requests, jobs and events.
import type { Appended, FlowCancel, NewDelivery, NewJob } from '../records.ts'
import { toAnswerText } from '../answer-text.ts'
import { selectAnswered, toAnswered, toOriginValue } from '../delivery-rows.ts'
import {
  type Columns,
  declareColumns,
  joinNames,
  newEventColumns,
  toColumns,
  toEventValues,
  unnest,
  type Value,
} from './columns.ts'
import { channel } from './listener.ts'
import { planOnce } from './naming.ts'
import type { Param, Query } from './pool.ts'
import { setDurable } from './settings.ts'

const deliveryColumns =
  declareColumns(`id text, received_at bigint, hook text, source text, event text, dedupe_key text, body_hash text,
  answer_status integer, answer_body text, recovered smallint, state text, mapping_id text, generation text,
  transform_hash text, waits_for text, problem text, trace text, log text, bytes bigint`)

const jobColumns =
  declareColumns(`delivery_id text, id text, lane text, state text, agent_id text, session_key text, bytes bigint, planned text,
  steps text, step_name text, labels text, ring text, flow_key text, flow_lane text, expires_ms bigint,
  settings text, stands_for text`)

const eventColumns: Columns = [['delivery_id', 'text'], ...newEventColumns]

const inputColumns: Columns = [...deliveryColumns, ['head', 'text'], ['body', 'bytea'], ['repeats', 'text']]
const firstJob = inputColumns.length + 1
const lastParam = firstJob + jobColumns.length + eventColumns.length

/** Inserts the jobs and events of the deliveries in `found (seq, id)`. Their parameters begin at `$first`. Sessions are locked in a fixed order. */
const buildChildInserts = (now: string, first: number) => `
  jobs_in AS (SELECT input.*, found.seq AS delivery_seq FROM ${unnest(jobColumns, first)}
    JOIN found ON found.id = input.delivery_id),
  jobs_out AS (INSERT INTO jobs (id, delivery_seq, stands_for, lane, state, agent_id, session_key, bytes, labels, flow, gate, created_at, run_at, ended_at)
    SELECT id, CASE WHEN stands_for IS NULL THEN delivery_seq END, stands_for, lane, state, agent_id, session_key, bytes, labels,
      CASE WHEN ring IS NOT NULL THEN 0 END, CASE WHEN ring IS NOT NULL THEN 3 ELSE 0 END, ${now}, ${now},
      CASE WHEN state = 'done' THEN ${now} END FROM jobs_in ORDER BY place RETURNING seq, id),
  parts_out AS (INSERT INTO job_parts (job_seq, planned, steps, step_names)
    SELECT o.seq, i.planned, i.steps, string_to_array(i.step_name, ',') FROM jobs_in i JOIN jobs_out o USING (id)),
  flow_out AS (INSERT INTO job_flow (job_seq, delivery_seq, ring, key, lane, expires_at, settings)
    SELECT o.seq, i.delivery_seq, i.ring, i.flow_key, i.flow_lane, ${now} + i.expires_ms, i.settings
    FROM jobs_in i JOIN jobs_out o USING (id) WHERE i.ring IS NOT NULL),
  events_in AS (SELECT input.* FROM ${unnest(eventColumns, first + jobColumns.length)} JOIN found ON found.id = input.delivery_id),
  events_out AS (INSERT INTO events (${joinNames(eventColumns)}, at)
    SELECT ${joinNames(eventColumns)}, ${now} FROM events_in ORDER BY place),
  sessions_out AS (INSERT INTO sessions (agent_id, session_key, updated_at)
    SELECT DISTINCT agent_id COLLATE "C", session_key COLLATE "C", ${now} FROM events_in ORDER BY 1, 2
    ON CONFLICT (agent_id, session_key) DO UPDATE SET updated_at = excluded.updated_at
      WHERE excluded.updated_at > sessions.updated_at)`

/**
 * A row that does not take its dedupe key waits for no other insert. It is a duplicate if a stored row has the key. The statement is usually a
 * transaction by itself. So it sets the limit for locks before it writes its first row, and asks for a durable commit.
 */
const insertBatch = (now: string, lockMs: number, ifTaken: string) => `${planOnce}
  WITH input AS (SELECT input.* FROM (SELECT concat(set_config('lock_timeout', '${lockMs}', true), ${setDurable}) AS are_set) settings, ${unnest(
    inputColumns,
    1,
  )} WHERE are_set IS NOT NULL),
  found AS (INSERT INTO deliveries (${joinNames(deliveryColumns)}, node, settled_at)
    SELECT ${joinNames(deliveryColumns)}, $${lastParam + 1}::text, CASE WHEN state NOT IN ('pending', 'parked') THEN ${now} END FROM input
    WHERE repeats IS NULL OR NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.hook = input.hook AND d.dedupe_key = input.repeats)
    ORDER BY place ${ifTaken} RETURNING seq, id),
  requests_out AS (INSERT INTO requests (delivery_seq, head, body)
    SELECT found.seq, head, body FROM input JOIN found USING (id) WHERE head IS NOT NULL),
  ${buildChildInserts(now, firstJob)}
  SELECT id, CASE WHEN $${lastParam} <> '' THEN pg_notify(${channel}, $${lastParam})::text END AS told FROM found`

const skipTaken = 'ON CONFLICT (hook, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING'

/** Whether the row of a delivery takes its dedupe key. */
const takesKey = ({ dedupe, state }: NewDelivery) => dedupe !== undefined && state !== 'skipped'

/** Inserts for a delivery that is stored already: $1 is its seq, $2 its id. */
export const insertChildren = (now: string) => `WITH found AS (SELECT $1::bigint AS seq, $2::text AS id),
  ${buildChildInserts(now, 3)} SELECT 1 AS done`

export type AppendOptions = {
  readonly now: string
  /** A notification to the other gateways, or empty. */
  readonly payload: string
  /** The id of this gateway. */
  readonly node: string | undefined
  /** The longest time that the statement may wait for one lock. */
  readonly lockMs: number
}

/** Two deliveries of a batch must not have the same dedupe key: a row of the batch does not see the other rows. */
export async function appendBatch(
  query: Query,
  deliveries: readonly NewDelivery[],
  how: AppendOptions,
): Promise<Appended[]> {
  // ON CONFLICT only if a row takes a key: an insert that may conflict is confirmed in a second record of the WAL
  const sql = insertBatch(how.now, how.lockMs, deliveries.some(takesKey) ? skipTaken : '')
  const stored = await query(sql, ...toBatchParams(deliveries), how.payload, how.node)
  const ids = new Set(stored.map(({ id }) => id))
  for (const delivery of deliveries) {
    if (!ids.has(delivery.id)) continue
    await keepNewest(query, delivery.id, delivery)
    await insertCancel(query, delivery.id, delivery.cancel)
  }
  const appended: Appended[] = []
  for (const delivery of deliveries) {
    const isStored = ids.has(delivery.id)
    appended.push(isStored ? { kind: 'stored' } : await findDuplicate(query, delivery, how))
  }
  return appended
}

type Ring = { readonly [Key in 'ringSize' | 'ringName' | 'mappingId']?: NewDelivery[Key] }

/** Adds a delivery to the ring of its mapping, and deletes the requests that it pushes out. */
export async function keepNewest(
  query: Query,
  id: string,
  { ringSize, mappingId = '', ringName = mappingId }: Ring,
): Promise<void> {
  if (ringSize === undefined) return
  await query('INSERT INTO rings (seq, mapping_id) SELECT seq, $2 FROM deliveries WHERE id = $1', id, ringName)
  await query(
    `WITH older AS (DELETE FROM rings WHERE seq IN
        (SELECT seq FROM rings WHERE mapping_id = $1 ORDER BY seq DESC OFFSET $2) RETURNING seq)
      DELETE FROM requests WHERE delivery_seq IN (SELECT seq FROM older)`,
    ringName,
    ringSize,
  )
}

/** Stores the cancel. The next claim carries it out. */
export async function insertCancel(query: Query, id: string, cancel: FlowCancel | undefined): Promise<void> {
  if (cancel === undefined) return
  const { ring, key, reason } = cancel
  const sql = `INSERT INTO flow_cancels (delivery_seq, ring, key, reason) SELECT seq, $2, $3, $4 FROM deliveries WHERE id = $1
    ON CONFLICT (delivery_seq) DO NOTHING`
  await query(sql, id, ring, key, reason)
}

type StoredRequest = NewDelivery['request']

/** The text of the head; empty for a request that is too large to be kept. */
export function toHeadText(request: StoredRequest): string | null {
  if (request === undefined) return null
  return request === 'too large' ? '' : JSON.stringify(request.head)
}

export function toBody(request: StoredRequest): Uint8Array | null {
  if (request === undefined) return null
  return request === 'too large' ? new Uint8Array() : request.body
}

export function measureRequestBytes(request: StoredRequest): number {
  return Buffer.byteLength(toHeadText(request) ?? '') + (toBody(request)?.byteLength ?? 0)
}

/** The key may have been removed since the insert. Then the delivery is stored after all. */
async function findDuplicate(query: Query, delivery: NewDelivery, how: AppendOptions): Promise<Appended> {
  const { hook, dedupe } = delivery
  if (dedupe === undefined) throw new Error('a delivery without a key conflicted with a key')
  const [row] = await query(selectAnswered, hook, dedupe.key)
  if (row === undefined) return (await appendBatch(query, [delivery], how))[0] ?? { kind: 'stored' }
  return { kind: 'duplicate', first: toAnswered(row) }
}

function toBatchParams(deliveries: readonly NewDelivery[]): Param[] {
  const rows = deliveries.map((delivery) => {
    const { dedupe, answer, request, state } = delivery
    const key = takesKey(delivery) ? dedupe?.key : null
    const waits = state === 'pending' || state === 'parked'
    const head = toHeadText(request)
    const body = toBody(request)
    return [
      delivery.id,
      delivery.receivedAt,
      delivery.hook,
      delivery.source,
      delivery.event,
      key,
      dedupe?.bodyHash,
      answer.status,
      toAnswerText(answer),
      toOriginValue(delivery),
      state,
      delivery.mappingId,
      delivery.generation,
      delivery.transformHash,
      delivery.waitsFor,
      delivery.problem && JSON.stringify(delivery.problem),
      JSON.stringify(delivery.trace),
      JSON.stringify(delivery.log),
      waits ? measureRequestBytes(request) : 0,
      head,
      body,
      key === null ? dedupe?.key : null,
    ]
  })
  return [...toColumns(rows, inputColumns), ...toChildParams(deliveries)]
}

/** The params of `buildChildInserts`: jobs, then events. */
export function toChildParams(deliveries: readonly { id: string; jobs: readonly NewJob[] }[]): Param[] {
  const jobs = deliveries.flatMap(({ id: deliveryId, jobs: own }) =>
    own.map((job) => {
      const { id, state, planned, steps, labels, flow } = job
      const lane = flow === undefined ? job.lane : undefined
      const text = JSON.stringify(planned)
      const { agentId, sessionKey } = planned
      const stepNames = steps.map(({ name }) => name).join(',')
      const bytes = Buffer.byteLength(text)
      const labelList = labels && JSON.stringify(labels)
      return [
        deliveryId,
        id,
        lane,
        state,
        agentId,
        sessionKey,
        bytes,
        text,
        JSON.stringify(steps),
        stepNames,
        labelList,
        ...toFlowParams(job),
        job.standsFor,
      ]
    }),
  )
  const events = deliveries.flatMap(({ id, jobs: own }) =>
    own.flatMap((job) => job.events.map((event) => [id, ...toEventValues(event)])),
  )
  return [...toColumns(jobs, jobColumns), ...toColumns(events, eventColumns)]
}

/** A job with a flow enters its lane when it is claimed. */
function toFlowParams({ flow, lane }: NewJob): Value[] {
  if (flow === undefined) return [null, null, null, null, null]
  return [flow.ring, flow.key, lane, flow.expiresMs, JSON.stringify(flow.settings)]
}
