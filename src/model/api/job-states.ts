/**
 * The states of a job, for the store and for the schemas of the API.
 * ```
 * queued ──claim──▶ running ──▶ done
 *   ▲                 │
 *   └── retry, lease ─┴──────▶ dead ──`hookloom retry`──▶ queued
 *
 * queued, dead ──`hookloom drop`, or retention──▶ dropped
 * queued, running ──its flow, or an operator──▶ superseded · cancelled · expired · skipped
 * ```
 */
export const jobStates = [
  'queued',
  'running',
  'done',
  'dead',
  'dropped',
  'superseded',
  'cancelled',
  'expired',
  'skipped',
] as const
