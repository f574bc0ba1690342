// The hash chain of the audit log: several owners of a store extend it, and a change by anybody else is noticed.
import { expect, onTestFinished, test } from 'vitest'
import { type AuditRow, chainEntry, createChainCheck } from '../../src/store/audit.ts'
import { findAuditBreak, retried } from './audit.ts'
import { openStores, whyNoPostgres } from './postgres-stage.ts'
import { createClock } from './stage.ts'

test.skipIf(whyNoPostgres)(
  'two gateways that append 200 entries at once make one chain',
  async () => {
    const stores = await openStores(2, createClock())
    onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))))
    await Promise.all(
      stores.flatMap((store, gateway) =>
        Array.from({ length: 100 }, (_, index) => store.audit({ ...retried, target: `${gateway}/${index}` })),
      ),
    )
    const rows = (await stores[0]?.auditLog({ limit: 500, after: 0 })) ?? []
    const targets = rows.map(({ entry }) => (JSON.parse(entry) as { target: string }).target)
    expect(rows.map(({ number }) => number)).toEqual(Array.from({ length: 200 }, (_, index) => index + 1))
    expect(new Set(targets).size).toBe(200)
    expect(findAuditBreak(rows)).toBeUndefined()
  },
  60_000,
)

const chain = Array.from({ length: 6 }).reduce<AuditRow[]>(
  (rows, _, index) => [...rows, chainEntry({ ...retried, target: `d-${index}` }, 1_000 + index, rows.at(-1))],
  [],
)
const copyChain = () => chain.map((row) => ({ ...row }))
const getRow = (rows: AuditRow[], index: number): AuditRow => rows[index] ?? expect.unreachable()
const withTarget = (row: AuditRow) => ({ ...row, entry: row.entry.replace(/"d-\d"/, '"d-9"') })

test.each<[how: string, found: string, tamper: (rows: AuditRow[]) => AuditRow[]]>([
  ['nothing was changed', 'no entry', (rows) => rows],
  ['the oldest entries were deleted, as by retention', 'no entry', (rows) => rows.slice(2)],
  ['the text of an entry was changed', 'entry 3', (rows) => rows.with(2, withTarget(getRow(rows, 2)))],
  ['the time of an entry was changed', 'entry 3', (rows) => rows.with(2, { ...getRow(rows, 2), at: 5 })],
  [
    'an entry was changed together with its hash',
    'entry 4',
    (rows) => rows.with(2, chainEntry({ ...retried, target: 'other' }, 1_002, getRow(rows, 1))),
  ],
  ['an entry in the middle was deleted', 'entry 4', (rows) => rows.toSpliced(2, 1)],
  [
    'an entry was deleted, and the later ones got new numbers',
    'entry 3',
    (rows) => rows.toSpliced(2, 1).map((row, index) => ({ ...row, number: index + 1 })),
  ],
  [
    'two entries were exchanged, each with the number of its new place',
    'entry 2',
    (rows) => rows.with(1, { ...getRow(rows, 2), number: 2 }).with(2, { ...getRow(rows, 1), number: 3 }),
  ],
  [
    'the first entry was replaced by one with the hash of an entry before it',
    'entry 1',
    (rows) => rows.with(0, chainEntry(retried, 1_000, { number: 0, hash: 'x' })),
  ],
  ['the text of an entry is no longer JSON', 'entry 2', (rows) => rows.with(1, { ...getRow(rows, 1), entry: 'x' })],
])('if %s, the check of the chain reports %s', (_how, found, tamper) => {
  const number = findAuditBreak(tamper(copyChain()))
  expect(number === undefined ? 'no entry' : `entry ${number}`).toBe(found)
})

test('the check of the audit log says why an entry does not fit the chain', () => {
  const check = createChainCheck()
  const why = chain.toSpliced(2, 2).map((row) => check(row)?.why)
  expect(why).toEqual([undefined, undefined, '2 entries before it are missing: 2 is followed by 5', undefined])
})
