/**
 * What is counted, with its labels:
 * - `deliveries {outcome}`: requests that were let in, by what became of them (accepted, skipped, parked, pending).
 * - `refusals {code}`: requests that were turned away, by problem code.
 * - `steps {step, outcome}`: effects of jobs (done, skipped, forwarded, retried, dead).
 * - `reloads {outcome}`: saved files that are live, or were refused.
 */
export type Meter = (
  name: 'deliveries' | 'refusals' | 'steps' | 'reloads',
  labels: Readonly<Record<string, string>>,
) => void

export const silentMeter: Meter = () => {}
