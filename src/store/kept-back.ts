// The queued jobs that a hold or a budget keeps back, with one script for all engines.
import type { Hold } from './records.ts'
import { readHolds } from './holds.ts'
import { column, type Row } from './rows.ts'
import { readNow, run, type Script } from './script.ts'
import type { Wait } from './waits.ts'

/** What keeps the jobs back, as the reason of the oldest of them. A job that several things keep back is in the list of each. */
export type KeptBack = {
  readonly wait: Extract<Wait, { kind: 'hold' | 'budget' }>
  readonly count: number
  /** When the oldest of them was stored. */
  readonly since: number
  /** The deliveries of the newest of them, the newest first. */
  readonly deliveries: readonly { readonly deliveryId: string; readonly hook: string; readonly at: number }[]
}

export interface KeptBackReader {
  /** `each`: the maximum number of deliveries in each list. Without a hold it reads only the jobs that wait for a budget; with one, all queued jobs. */
  keptBack(query: { each: number }): Promise<KeptBack[]>
}

/** The maximum number of holds whose jobs are counted. Sessions can have thousands of holds. */
const maxHolds = 20

type Kept = { readonly condition: string; readonly param: string; readonly each: number }

export function* readKeptBack({ each }: { each: number }): Script<KeptBack[]> {
  const now = yield* readNow()
  const found: KeptBack[] = []
  const names = yield* run(
    `SELECT DISTINCT budget FROM jobs WHERE budget IS NOT NULL AND state = 'queued' ORDER BY budget`,
  )
  for (const { budget } of names) {
    const name = String(budget)
    const kept = yield* readKept({ condition: 'j.budget = $1', param: name, each })
    if (kept !== undefined)
      found.push({ ...kept, wait: { kind: 'budget', jobId: kept.jobId, name, forMs: kept.runAt - now } })
  }
  for (const hold of (yield* readHolds()).slice(0, maxHolds)) {
    const kept = yield* readKept({ ...toCondition(hold), each })
    if (kept !== undefined)
      found.push({ ...kept, wait: { kind: 'hold', jobId: kept.jobId, hold, agoMs: now - hold.at } })
  }
  return found
}

/** The text of a label, as JSON, occurs in the labels of its jobs only. The limits of a job are in the settings of its flow. */
function toCondition({ label }: Hold): Pick<Kept, 'condition' | 'param'> {
  const param = JSON.stringify(label)
  if (label === 'all') return { condition: `j.delivery_seq IS NOT NULL AND $1 <> ''`, param }
  if (!label.startsWith('limit:')) return { condition: `replace(j.labels, $1, '') <> j.labels`, param }
  const ofFlow = `SELECT 1 FROM job_flow f WHERE f.job_seq = j.seq AND replace(f.settings, $1, '') <> f.settings`
  return { condition: `EXISTS (${ofFlow})`, param: JSON.stringify(label.slice('limit:'.length)) }
}

function* readKept({ condition, param, each }: Kept) {
  const queued = `state = 'queued' AND ended_at IS NULL AND ${condition}`
  const [sum] = yield* run(
    `SELECT count(*) AS count, min(created_at) AS since, min(run_at) AS run_at, min(seq) AS seq FROM jobs j WHERE ${queued}`,
    param,
  )
  const count = Number(sum?.['count'])
  if (sum === undefined || count === 0) return undefined
  const [first] = yield* run('SELECT id FROM jobs WHERE seq = $1', sum['seq'] ?? null)
  const newest = yield* run(
    `SELECT d.id, d.hook, d.received_at FROM (SELECT DISTINCT j.delivery_seq AS seq FROM jobs j WHERE ${queued}) k
      JOIN deliveries d ON d.seq = k.seq ORDER BY k.seq DESC LIMIT $2`,
    param,
    each,
  )
  const deliveries = newest.map(toDelivery)
  return { count, since: Number(sum['since']), runAt: Number(sum['run_at']), jobId: String(first?.['id']), deliveries }
}

function toDelivery(row: Row): KeptBack['deliveries'][number] {
  return { deliveryId: column(row, 'id'), hook: column(row, 'hook'), at: Number(row['received_at']) }
}
