// SQLite in memory: one connection on the main thread reads and commits. The data is lost when the store is closed.
import { runBatch } from './batch.ts'
import type { ReadConnection } from './connection.ts'
import { type Database, openDatabase, readFacts, classifyError } from './driver.ts'
import { migrate } from './migrations.ts'
import { storeUnavailable } from '../rules.ts'
import { trackWaitingBytes } from './waiting-bytes.ts'
import type { Operation, OperationOf, Results, Writer } from './operations.ts'
import { toUnwritableProblem } from './values.ts'

type Use = <Found>(query: (db: Database) => Found) => Found

export function openMemory(): { readonly connection: ReadConnection; readonly writer: Writer } {
  const db = openDatabase(':memory:', { readOnly: false, busyMs: 0 })
  migrate(db, 'memory')
  trackWaitingBytes(db)
  const facts = readFacts(db)
  let isOpen = true
  const use: Use = (query) => {
    if (!isOpen) throw storeUnavailable('The store is closed.', 5)
    try {
      return query(db)
    } catch (error) {
      const trouble = classifyError(error)
      throw trouble ? storeUnavailable(`The store failed: ${trouble.what}.`, 5, error) : error
    }
  }
  const close = () => {
    if (isOpen) db.close()
    isOpen = false
  }
  return {
    connection: { use: (_empty, query) => use(query), reset: () => {}, close },
    writer: { ...createMemoryWriter(use), facts: () => facts, close: async () => close() },
  }
}

/** Commits each operation on the calling thread, in a separate transaction, before `run` returns. */
function createMemoryWriter(use: Use): Pick<Writer, 'run' | 'state'> {
  let commits = 0
  let waitingBytes = 0
  return {
    run: async <Kind extends Operation['kind']>(operation: OperationOf<Kind>) => {
      const { outcomes, waitingChange } = use((db) => runBatch({ db, operations: [operation], isBulk: true }))
      const [outcome] = outcomes
      commits += 1
      waitingBytes += waitingChange
      if (!outcome?.ok) throw toUnwritableProblem(outcome?.cause)
      // as: batch.ts returns the result of the operation's kind
      return outcome.value as Results[Kind]
    },
    state: () => ({ trouble: undefined, commits, waiting: 0, waitingBytes, busySince: undefined }),
  }
}
