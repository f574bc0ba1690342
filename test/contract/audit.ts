import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { AuditRow, NewAuditEntry } from '../../src/store/audit.ts'
import { createChainCheck } from '../../src/store/audit.ts'
import { newDelivery } from './stage.ts'
import type { Stage } from './store.ts'

export const retried: NewAuditEntry = {
  by: { kind: 'token', name: 'ci' },
  act: 'retry',
  target: 'd-1',
  outcome: 'done',
}

/** The number of the first row that does not fit the chain. Undefined if the whole chain is valid. */
export function findAuditBreak(rows: readonly AuditRow[]): number | undefined {
  const check = createChainCheck()
  return rows.map((row) => check(row)).find((found) => found !== undefined)?.number
}

export function describeAudit(stage: () => Stage): void {
  const readAll = () => stage().store.auditLog({ limit: 1_000, after: 0 })
  const readNumbers = async (query: { after?: number; before?: number; since?: number; limit: number }) =>
    (await stage().store.auditLog(query)).map(({ number }) => number)

  describe('the audit log', () => {
    test('an entry of the audit log has a number, the time of the store and the hash of the entry before it', async () => {
      const { store, clock } = stage()
      const first = await store.audit(retried)
      clock.advance(1_500)
      await store.audit({ ...retried, act: 'drop', gateway: 'g-1', details: { hook: 'ci' }, reason: 'no', began: 1 })
      const [one, two] = await readAll()
      expect(one).toEqual(first)
      const at = new Date(clock()).toISOString()
      // the expected text, in the canonical form of RFC 8785, without the code under test
      const text = `{"act":"drop","at":"${at}","began":1,"by":{"kind":"token","name":"ci"},"details":{"hook":"ci"},"gateway":"g-1","number":2,"outcome":"done","previous":"${one?.hash}","reason":"no","target":"d-1"}`
      expect(two).toEqual({
        number: 2,
        at: clock(),
        entry: text,
        hash: createHash('sha256').update(text).digest('hex'),
      })
    })

    test('entries of the audit log that are added at once have one order, and no entry is lost', async () => {
      const { store } = stage()
      const added = await Promise.all(
        Array.from({ length: 40 }, (_, index) => store.audit({ ...retried, target: `d-${index}` })),
      )
      const rows = await readAll()
      expect(rows.map(({ number }) => number)).toEqual(rows.map((_, index) => index + 1))
      expect(rows).toEqual(added.toSorted((one, other) => one.number - other.number))
      expect(findAuditBreak(rows)).toBeUndefined()
    })

    test('text from outside becomes one printable line of limited length in the audit log', async () => {
      const { store } = stage()
      await store.audit({ ...retried, target: `\u001B[2J\0\n${'x'.repeat(2_000)}`, reason: 'half \uD83D' })
      const [row] = await readAll()
      const { target, reason } = JSON.parse(row?.entry ?? '') as { target: string; reason: string }
      expect(target).toMatch(/^␛\[2J␀ x{494}…$/)
      expect(reason).toBe('half \uFFFD')
      expect(findAuditBreak(await readAll())).toBeUndefined()
    })

    test('entries of the audit log can be read from either end, and from a given moment on', async () => {
      const { store, clock } = stage()
      for (let count = 0; count < 3; count += 1) await store.audit(retried)
      clock.advance(10)
      for (let count = 0; count < 2; count += 1) await store.audit(retried)
      expect(await readNumbers({ limit: 2 })).toEqual([4, 5])
      expect(await readNumbers({ limit: 2, before: 4 })).toEqual([2, 3])
      expect(await readNumbers({ limit: 2, after: 1 })).toEqual([2, 3])
      expect(await readNumbers({ limit: 9, since: clock() })).toEqual([4, 5])
    })

    test('retention deletes the oldest entries of the audit log, never the newest one, and the chain continues', async () => {
      const { store, clock } = stage()
      await store.audit(retried)
      await store.audit(retried)
      clock.advance(1_000)
      const kept = await store.audit(retried)
      expect(await store.pruneAudit(1_000)).toBe(0)
      expect(await store.pruneAudit(999)).toBe(2)
      expect(await readAll()).toEqual([kept])
      clock.advance(10_000)
      expect(await store.pruneAudit(1)).toBe(0)
      const next = await store.audit(retried)
      expect(next.number).toBe(4)
      expect(findAuditBreak([kept, next])).toBeUndefined()
      expect(findAuditBreak(await readAll())).toBeUndefined()
    })

    test('a sweep of deliveries deletes no entry of the audit log', async () => {
      const { store, clock } = stage()
      await store.append(newDelivery({ at: clock(), jobs: [] }))
      await store.audit(retried)
      clock.advance(10_000)
      await store.sweep(1)
      expect(await readNumbers({ limit: 9 })).toEqual([1])
    })
  })
}
