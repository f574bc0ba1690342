// The locks that plain writes take before their script runs: its first statement begins under the lock.
import type { AccountName } from '../budgets.ts'
import type { PlainWrite } from '../plain.ts'
import type { TurnStart } from '../turns.ts'
import { lockWaiting } from './budgets.ts'
import { lockFlows } from './flow.ts'
import type { Query } from './pool.ts'

const toLock = (name: string) => `pg_advisory_xact_lock(hashtextextended(${name}, 0))::text`

/** Each lock is held until the transaction ends. The arguments are those of the call, so `as` names their types. */
export const locks: { readonly [Name in PlainWrite]?: (query: Query, args: readonly unknown[]) => Promise<unknown> } = {
  // each gateway reads the newest entry after it was committed
  audit: (query) => query(`SELECT ${toLock(`'hookloom audit ' || current_schema()`)} AS locked`),
  // one start of a session at a time: the others wait for it, and then count it
  startTurn: (query, [start]) =>
    query(`SELECT ${toLock(`'hookloom turn ' || current_schema() || $1`)} AS locked`, (start as TurnStart).label),
  raiseBudget: (query, [account]) => lockWaiting(query, [(account as AccountName).name]),
  tryNow: (query, [deliveryId]) =>
    lockFlows(query, `delivery_seq = (SELECT seq FROM deliveries WHERE id = $1)`, deliveryId as string),
  wakeBudgets: (query) => lockFlows(query, `state = 'queued' AND budget IS NOT NULL`),
}
