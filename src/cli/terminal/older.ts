// The way back from a list that its limit cut off.
import colors from 'picocolors'
import type { Context } from './context.ts'
import { toInvocation } from './invocation.ts'

/** Says how the page before this one is read, where the page is full. `found` is oldest first. */
export function printOlder<Row>(
  context: Context,
  command: readonly string[],
  { found, limit, cursor }: { found: readonly Row[]; limit: number; cursor: (oldest: Row) => string },
): void {
  const [oldest] = found
  if (oldest === undefined || found.length < limit) return
  const args = [...command, '--limit', String(limit), '--before', cursor(oldest)]
  context.print(`\n${colors.dim(`Older: ${toInvocation(context, args)}`)}`)
}
