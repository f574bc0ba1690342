// Copies a store, row by row, into an empty store of any engine. All engines read and write the rows in one form.
import { Problem } from '../core/model/problem.ts'
import type { Row, SqlValue } from './rows.ts'

export type ColumnType = 'integer' | 'text' | 'bytes'

export type CopiedTable = {
  readonly name: string
  /** A unique key, by which rows are read in order. */
  readonly key: readonly string[]
  readonly columns: Readonly<Record<string, ColumnType>>
}

type ColumnNames = { readonly [Type in ColumnType]?: string }

/** The columns are named by their types, and those of the key come first. */
function declareTable(name: string, key: string, names: ColumnNames): CopiedTable {
  const place = key.split(' ')
  const columns = new Map<string, ColumnType>()
  // as: Object.entries loses the type of the names
  for (const [type, list] of Object.entries(names) as [ColumnType, string][])
    for (const column of list.split(' ')) columns.set(column, type)
  const ordered = [...columns].toSorted(([one], [other]) => Number(place.includes(other)) - Number(place.includes(one)))
  return { name, key: place, columns: Object.fromEntries(ordered) }
}

/**
 * The tables in an order that satisfies their foreign keys. The other tables are not copied, such as those of named leases, gateways, reservations and
 * the keys of flows: the next owner fills them anew.
 */
export const copiedTables: readonly CopiedTable[] = [
  declareTable('deliveries', 'seq', {
    integer: 'seq received_at settled_at body_differed answer_status recovered',
    text: 'id state hook source event mapping_id generation transform_hash waits_for failed_by node dedupe_key body_hash answer_body problem trace log head',
    bytes: 'body',
  }),
  declareTable('rings', 'seq', { integer: 'seq', text: 'mapping_id' }),
  declareTable('repeats', 'seq', { integer: 'seq times last_at' }),
  declareTable('jobs', 'seq', {
    integer: 'seq delivery_seq created_at run_at locked_until failing_since ended_at fence attempts flow queued_again',
    text: 'id lane state failures stands_for last_error ended_by labels budget steps posts planned',
  }),
  declareTable('events', 'seq', {
    integer: 'seq at consumed_at trusted wakes',
    text: 'agent_id session_key text source delivery_id',
  }),
  declareTable('sessions', 'agent_id session_key', {
    integer: 'updated_at',
    text: 'agent_id session_key recipient_channel recipient_to runner_state',
  }),
  declareTable('messages', 'seq', { integer: 'seq at', text: 'agent_id session_key text run_id role' }),
  declareTable('holds', 'label kind', { integer: 'at until', text: 'label kind author reason' }),
  declareTable('endings', 'job_seq', { integer: 'job_seq at', text: 'state ended_by reason' }),
  declareTable('job_flow', 'job_seq', { integer: 'job_seq delivery_seq expires_at', text: 'ring key lane settings' }),
  declareTable('flow_counts', 'seq', { integer: 'seq at', text: 'name' }),
  declareTable('flow_cancels', 'delivery_seq', { integer: 'delivery_seq', text: 'ring key reason' }),
  declareTable('quarantine', 'seq', {
    integer: 'seq received_at known bytes',
    text: 'id hook label network key_id refusal',
    bytes: 'sealed',
  }),
  declareTable('accounts', 'name starts_at', {
    integer: 'starts_at nanos tokens turns raised_nanos raised_tokens raised_turns alerted',
    text: 'name',
  }),
  declareTable('cursors', 'name', { text: 'name value' }),
  declareTable('audit', 'number', { integer: 'number at', text: 'hash entry' }),
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
