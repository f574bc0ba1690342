// Copies a store, row by row, into an empty store of any engine. All engines read and write the rows in one form.
import { Problem } from '../model/problem.ts'
import type { Row, SqlValue } from './rows.ts'

export type ColumnType = 'integer' | 'text' | 'bytes'

export type CopiedTable = {
  readonly name: string
  /** A unique key, by which rows are read in order. */
  readonly key: readonly string[]
  readonly columns: Readonly<Record<string, ColumnType>>
}

const events = { seq: 'integer', at: 'integer', agent_id: 'text', session_key: 'text', text: 'text' } as const

/**
 * The tables in an order that satisfies their foreign keys. The other tables are not copied, such as those of named leases, gateways, reservations and
 * the keys of flows: the next owner fills them anew.
 */
export const copiedTables: readonly CopiedTable[] = [
  {
    name: 'deliveries',
    key: ['seq'],
    columns: {
      seq: 'integer',
      id: 'text',
      received_at: 'integer',
      settled_at: 'integer',
      state: 'text',
      hook: 'text',
      source: 'text',
      event: 'text',
      mapping_id: 'text',
      generation: 'text',
      transform_hash: 'text',
      waits_for: 'text',
      failed_by: 'text',
      node: 'text',
      dedupe_key: 'text',
      body_hash: 'text',
      body_differed: 'integer',
      answer_status: 'integer',
      answer_body: 'text',
      recovered: 'integer',
      problem: 'text',
      trace: 'text',
      log: 'text',
      head: 'text',
      body: 'bytes',
    },
  },
  { name: 'rings', key: ['seq'], columns: { seq: 'integer', mapping_id: 'text' } },
  { name: 'repeats', key: ['seq'], columns: { seq: 'integer', times: 'integer', last_at: 'integer' } },
  {
    name: 'jobs',
    key: ['seq'],
    columns: {
      seq: 'integer',
      id: 'text',
      delivery_seq: 'integer',
      lane: 'text',
      state: 'text',
      created_at: 'integer',
      run_at: 'integer',
      locked_until: 'integer',
      failing_since: 'integer',
      failures: 'text',
      ended_at: 'integer',
      fence: 'integer',
      attempts: 'integer',
      stands_for: 'text',
      last_error: 'text',
      ended_by: 'text',
      labels: 'text',
      flow: 'integer',
      queued_again: 'integer',
      budget: 'text',
      steps: 'text',
      posts: 'text',
      planned: 'text',
    },
  },
  {
    name: 'events',
    key: ['seq'],
    columns: {
      ...events,
      consumed_at: 'integer',
      trusted: 'integer',
      wakes: 'integer',
      source: 'text',
      delivery_id: 'text',
    },
  },
  {
    name: 'sessions',
    key: ['agent_id', 'session_key'],
    columns: {
      agent_id: 'text',
      session_key: 'text',
      updated_at: 'integer',
      recipient_channel: 'text',
      recipient_to: 'text',
      runner_state: 'text',
    },
  },
  { name: 'messages', key: ['seq'], columns: { ...events, run_id: 'text', role: 'text' } },
  {
    name: 'holds',
    key: ['label', 'kind'],
    columns: { label: 'text', kind: 'text', at: 'integer', until: 'integer', author: 'text', reason: 'text' },
  },
  {
    name: 'endings',
    key: ['job_seq'],
    columns: { job_seq: 'integer', at: 'integer', state: 'text', ended_by: 'text', reason: 'text' },
  },
  {
    name: 'job_flow',
    key: ['job_seq'],
    columns: {
      job_seq: 'integer',
      delivery_seq: 'integer',
      ring: 'text',
      key: 'text',
      lane: 'text',
      expires_at: 'integer',
      settings: 'text',
    },
  },
  {
    name: 'flow_counts',
    key: ['seq'],
    columns: { seq: 'integer', name: 'text', at: 'integer' },
  },
  {
    name: 'flow_cancels',
    key: ['delivery_seq'],
    columns: { delivery_seq: 'integer', ring: 'text', key: 'text', reason: 'text' },
  },
  {
    name: 'quarantine',
    key: ['seq'],
    columns: {
      seq: 'integer',
      id: 'text',
      received_at: 'integer',
      hook: 'text',
      label: 'text',
      network: 'text',
      known: 'integer',
      bytes: 'integer',
      key_id: 'text',
      refusal: 'text',
      sealed: 'bytes',
    },
  },
  {
    name: 'accounts',
    key: ['name', 'starts_at'],
    columns: {
      name: 'text',
      starts_at: 'integer',
      nanos: 'integer',
      tokens: 'integer',
      turns: 'integer',
      raised_nanos: 'integer',
      raised_tokens: 'integer',
      raised_turns: 'integer',
      alerted: 'integer',
    },
  },
  { name: 'cursors', key: ['name'], columns: { name: 'text', value: 'text' } },
  { name: 'audit', key: ['number'], columns: { number: 'integer', at: 'integer', hash: 'text', entry: 'text' } },
]

/** A store to which no gateway writes until the end of the copy. */
export type CopySource = {
  /** At most `limit` rows in the order of their keys: those whose keys follow `after`, or the first rows if `after` is undefined. */
  read(table: CopiedTable, after: readonly SqlValue[] | undefined, limit: number): Promise<Row[]>
  count(table: CopiedTable): Promise<number>
}

/** An empty store. The rows become visible at the end, all at once, or not at all. */
export type CopyTarget = {
  write(table: CopiedTable, rows: readonly Row[]): Promise<void>
  count(table: CopiedTable): Promise<number>
}

/** Small enough for memory: the body of a request has at most 256 KiB by default. */
const rowsAtOnce = 200

/** Throws `store-unavailable` if a table does not have as many rows in the target as in the source. Returns the number of rows of each table. */
export async function copyRows(
  source: CopySource,
  target: CopyTarget,
  report: (table: string, rows: number) => unknown,
): Promise<Readonly<Record<string, number>>> {
  const copied: Record<string, number> = {}
  for (const table of copiedTables) {
    const count = await copyTable(table, source, target)
    const [there, here] = [await source.count(table), await target.count(table)]
    if (there !== count || here !== count) {
      const found = `the source has ${there} rows in ${table.name}, ${count} were read, and the target has ${here}`
      throw new Problem('store-unavailable', `The copy is not complete, and was discarded: ${found}. Run it again.`)
    }
    copied[table.name] = count
    await report(table.name, count)
  }
  return copied
}

async function copyTable(table: CopiedTable, source: CopySource, target: CopyTarget): Promise<number> {
  let count = 0
  for (let after: readonly SqlValue[] | undefined; ;) {
    const rows = await source.read(table, after, rowsAtOnce)
    const last = rows.at(-1)
    if (last === undefined) return count
    await target.write(table, rows)
    count += rows.length
    after = table.key.map((column) => last[column] ?? null)
  }
}
