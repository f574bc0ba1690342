// How far runs and deliveries are, for all callers that wait for them: one short read, however many wait.
import type { JobState } from '../model/api/answers.ts'
import type { DeliveryState } from '../core/model/delivery.ts'
import type { Row } from './rows.ts'

/** `change`: a text that differs after a report that recorded something. It is empty for a delivery. */
export type Progress = {
  readonly id: string
  readonly state: JobState | DeliveryState
  readonly change: string
}

export interface ProgressReader {
  /**
   * The progress of jobs and deliveries, by their ids, in any order. Left out are ids that the store does not have. An engine may also leave out
   * wakes, which are done when they are stored.
   */
  progress(ids: readonly string[]): Promise<Progress[]>
}

/** `isOne`: the condition that a column is one of the ids. `parts`: the table with the steps and the posts. `join`: how it is joined. */
export const selectProgress = (isOne: (column: string) => string, { parts, join = '' }: Parts): string => `
  SELECT j.id, j.state, j.fence || '.' || j.attempts || '.' || octet_length(${parts}.steps) || '.' || octet_length(${parts}.posts) AS change
    FROM jobs j ${join} WHERE ${isOne('j.id')}
  UNION ALL SELECT d.id, d.state, '' FROM deliveries d WHERE ${isOne('d.id')}`

type Parts = { readonly parts: string; readonly join?: string }

export function toProgress({ id, state, change }: Row): Progress {
  // as: the engines write only these states
  return { id: String(id), state: state as Progress['state'], change: String(change) }
}
