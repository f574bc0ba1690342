// The list of deliveries: newest rows, by filters. A text or a time is searched in the rows themselves, in steps of the caller.
import { searchedBytes } from '../queries.ts'

export const recordColumns = `d.seq, d.id, d.received_at, d.hook, d.source, d.event, d.mapping_id, d.generation, d.transform_hash,
  d.state, d.body_differed, d.settled_at, d.answer_status, d.answer_body, d.problem, d.trace, d.log, d.node, d.recovered,
  (SELECT r.times FROM repeats r WHERE r.seq = d.seq) AS repeats,
  (SELECT r.last_at FROM repeats r WHERE r.seq = d.seq) AS repeated_at`

/** The newest `$limit` rows, oldest first. */
export const selectNewestRows = (sql: string, order: string, limit: string) =>
  `SELECT * FROM (${sql} ORDER BY ${order} DESC LIMIT ${limit}) n ORDER BY ${order}`

export const selectSeq = (id: string) =>
  `coalesce((SELECT seq FROM deliveries WHERE id = ${id}), (SELECT delivery_seq FROM jobs WHERE id = ${id}))`

/** With the collation C, `lower` changes ASCII letters only, and takes an eighth of the time of `translate`. */
const whereContains = (text: string) => `strpos(lower(${text} COLLATE "C"), $6) > 0`
const searchedStart = (text: string) => `substr(${text}, 1, ${searchedBytes})`
const valueOf = (text: string, names: string) =>
  String.raw`substring(${text} from '"(?:${names})":"((?:[^"\\]|\\.)*)"')`
/**
 * Searches the whole text first, and then the values that a regular expression finds in it: to parse the text would fail for some
 * escapes.
 */
const whereJsonContains = (text: string, ...names: readonly string[]) =>
  `(${whereContains(text)} AND (${names.map((name) => whereContains(searchedStart(valueOf(text, name)))).join(' OR ')}))`
/**
 * Filters the rows between $7 and $2, the seqs of two places. $6: the text. $10: its bytes as `encode` writes them, because a body need not be a
 * text. OFFSET 0 prevents a hash of the whole table.
 */
export const selectDeliveries = selectNewestRows(
  `SELECT ${recordColumns} FROM deliveries d WHERE d.seq < $2 AND d.seq >= $7 AND ($3::text IS NULL OR d.state = $3)
    AND ($4::text IS NULL OR d.hook = $4) AND ($5::text IS NULL OR d.source = $5)
    AND ($8::bigint IS NULL OR d.received_at >= $8) AND ($9::bigint IS NULL OR d.received_at < $9)
    AND ($6::text IS NULL OR starts_with(d.id, $6) OR ${whereContains('concat_ws(chr(10), d.hook, d.source, d.event, d.mapping_id)')}
      OR ${whereJsonContains('d.problem', 'detail', 'frame')}
      OR EXISTS (SELECT 1 FROM requests r WHERE r.delivery_seq = d.seq
        AND strpos(lower(encode(${searchedStart('r.body')}, 'escape') COLLATE "C"), $10) > 0 OFFSET 0)
      OR EXISTS (SELECT 1 FROM jobs j JOIN job_parts p ON p.job_seq = j.seq WHERE j.delivery_seq = d.seq AND (${whereContains('j.last_error')}
        OR ${whereContains('j.session_key')} OR ${whereJsonContains('p.planned', 'message', 'text')}
        OR EXISTS (SELECT 1 FROM messages m WHERE m.run_id = j.id AND m.role = 'assistant' AND ${whereContains(searchedStart('m.text'))} OFFSET 0)) OFFSET 0))`,
  'seq',
  '$1',
)
export const selectStep = `SELECT id, received_at FROM deliveries
  WHERE seq <= coalesce($1::bigint, (SELECT max(seq) + 1 FROM deliveries)) - $2::bigint AND seq > $3::bigint
  ORDER BY seq DESC LIMIT 1`

/** The bytes of a text in UTF-8, written as `encode(…, 'escape')` of Postgres writes them. */
export function toEscapedBytes(text: string): string {
  const escapeByte = (byte: string) => (byte === '\\' ? '\\\\' : `\\${byte.charCodeAt(0).toString(8).padStart(3, '0')}`)
  return Buffer.from(text)
    .toString('latin1')
    .replace(/[\0\\\x80-\xff]/g, escapeByte)
}
