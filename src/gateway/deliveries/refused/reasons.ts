// The reasons in the trace of a refusal, as people read them.
import type { TraceEntry } from '../../../core/model/problem.ts'

/** The reason in the trace of a mapping whose scheme does not appear in the headers. The name of the scheme follows it. */
export const unclaimedReason = 'the request has no proof of the scheme'

const isUnclaimed = ({ why }: TraceEntry) => why.startsWith(unclaimedReason)

/** Whether no proof of a request that got 401 was checked: perhaps no mapping verifies its sender yet. */
export function isProofUnchecked(trace: readonly TraceEntry[]): boolean {
  return trace.every((entry) => !entry.matched && isUnclaimed(entry))
}

/** Each reason once, after the mappings that have it. A proof that the request does not have is no reason if another one was checked. */
export function describeTrace(trace: readonly TraceEntry[]): string[] {
  const told = isProofUnchecked(trace) ? trace : trace.filter((entry) => !isUnclaimed(entry))
  const idsByReason = new Map<string, string[]>()
  for (const { mappingId, why } of told) idsByReason.set(why, [...(idsByReason.get(why) ?? []), mappingId])
  return [...idsByReason].map(
    ([why, [first = '', ...others]]) => `${first}${others.length === 0 ? '' : ` and ${others.length} more`}: ${why}`,
  )
}

/** The most useful reason of a refusal, for the operator: of a proof that failed, the first that was checked. */
export function findReason({ status, error, trace }: Refused): string {
  return (status === 401 ? describeTrace(trace)[0] : undefined) ?? error
}

type Refused = { readonly status: number; readonly error: string; readonly trace: readonly TraceEntry[] }
