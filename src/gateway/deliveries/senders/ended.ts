// The refusals of known senders that a person must look at: those whose sender was not accepted since, and that nobody ended.
import type { ProblemCode } from '../../../core/model/problem.ts'
import type { Store } from '../../../store/store.ts'
import { readRecords, type RefusedCause, type SenderRecord, toCauseName, updateRecord } from './record.ts'

/** Fewer refusals that only resemble a sender may be those of a stranger. */
const minLoose = 3

export type OpenRefusals = RefusedCause & Pick<SenderRecord, 'hook'>

/** The causes of refusals that are open, of all senders. */
export function listOpenRefusals(records: readonly SenderRecord[]): OpenRefusals[] {
  return records.flatMap(({ hook, refused }) =>
    Object.values(refused).flatMap((cause) => (isOpen(cause) ? { ...cause, hook } : [])),
  )
}

function isOpen({ count, firm, acceptedAt }: RefusedCause): boolean {
  return acceptedAt === undefined && (firm > 0 || count >= minLoose)
}

type Refused = { readonly hook: string; readonly code: ProblemCode; readonly at: number }

/** Whether a refusal is over: its sender was accepted later, or a person ended its cause. */
export function isEnded({ hook, code, at }: Refused, records: readonly SenderRecord[]): boolean {
  const causes = records.flatMap((record) => (record.hook === hook ? (record.refused[toCauseName(code)] ?? []) : []))
  return causes.length > 0 && causes.every(({ acceptedAt }) => acceptedAt !== undefined && acceptedAt >= at)
}

/** Ends the open refusals of a hook with one cause, until the next one. Returns how many senders had such refusals. */
export async function endRefusals(
  store: Pick<Store, 'cursor' | 'cursors' | 'appendAll'>,
  { hook, code, at }: Refused,
): Promise<number> {
  const name = toCauseName(code)
  let ended = 0
  for (const record of await readRecords(store)) {
    const known = record.refused[name]
    if (record.hook !== hook || known === undefined || !isOpen(known)) continue
    ended += 1
    await updateRecord(store, record, (before) => {
      const cause = before?.refused[name]
      if (before === undefined || cause === undefined) return undefined
      const { toldAt: _, ...rest } = cause
      // the record keeps the cause for an hour, so that no gateway takes its older refusals for new ones
      const over = { ...rest, count: 0, firm: 0, acceptedAt: at, toldBeforeAt: at }
      return { ...before, refused: { ...before.refused, [name]: over } }
    })
  }
  return ended
}
