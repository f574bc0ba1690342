// What a report changes in the row of its job.
import type { Database, Row, SqlValue } from './driver.ts'
import type { OperationOf } from './operations.ts'
import { isWorkIntact, sums } from './sums.ts'

/** Writes what a report changes in a row that it does not queue again, as one statement: each one would write the row and its indexes. */
export function writeJob(db: Database, report: OperationOf<'report'>, { seq = null, ...stored }: Row): void {
  const { steps, posts, leaseMs, leavesLane, outcome, at } = report
  const sets: string[] = []
  const values: SqlValue[] = []
  const set = (sql: string, ...given: readonly SqlValue[]) => {
    sets.push(sql)
    values.push(...given)
  }
  const work = { steps: addSteps(String(stored['steps']), steps), posts: posts ?? stored['posts'] ?? null }
  if (steps.length > 0) set('steps = ?, failing_since = NULL', work.steps)
  if (posts !== undefined) set('posts = ?', posts)
  // a text that was damaged since the claim keeps its sum, so that the next claim finds it
  if ((steps.length > 0 || posts !== undefined) && isWorkIntact(stored)) set('work_sum = ?', sums.work(work))
  // a job that is done does not need its lane and its labels; without them, its last step fits into the page of the row
  if (outcome.kind === 'done')
    set(`state = 'done', lane = NULL, labels = NULL, locked_until = NULL, attempts = attempts + 1, ended_at = ?`, at)
  else if (leavesLane) set('lane = NULL')
  if (outcome.kind === 'goes on' && leaseMs !== undefined) set('locked_until = ?', at + leaseMs)
  if (sets.length > 0) db.run(`UPDATE jobs SET ${sets.join(', ')} WHERE seq = ?`, ...values, seq)
}

/** The JSON array with the new steps at its end. */
function addSteps(stored: string, added: OperationOf<'report'>['steps']): string {
  if (added.length === 0) return stored
  const texts = added.map(({ json }) => json).join(',')
  return stored === '[]' ? `[${texts}]` : `${stored.slice(0, -1)},${texts}]`
}
