// The list is a contiguous part of the store: what changes below its end, and what is cut, is counted.
import { expect, test } from 'vitest'
import { addChanges, addPage, emptyRange, type ListRange } from '../../../src/inspector/range.ts'
import { type ListRow, toListRow } from '../../../src/inspector/rows.ts'
import type { DeliveryRow } from '../../../src/model/api/answers.ts'

const filters = { state: '', hook: '', source: '', q: '', since: '', until: '' }
const noJobs = {
  queued: 0,
  running: 0,
  done: 1,
  dead: 0,
  failing: 0,
  dropped: 0,
  superseded: 0,
  cancelled: 0,
  expired: 0,
}

/** The nth delivery of the store. Its id and its time grow with n. */
function makeRow(n: number, fields: Partial<DeliveryRow> = {}): ListRow {
  return toListRow({
    deliveryId: `d-${String(n).padStart(5, '0')}`,
    receivedAt: new Date(1_700_000_000_000 + n).toISOString(),
    hook: 'x',
    source: null,
    event: null,
    mappingId: null,
    repeats: 0,
    repeatedAt: null,
    recovered: false,
    edited: false,
    state: 'accepted',
    summary: '',
    sourceName: null,
    code: null,
    place: null,
    became: [],
    doneMs: null,
    jobs: { ...noJobs, skipped: 0 },
    ...fields,
  })
}

/** The rows from `first` to `last`, both included, as a page of the gateway. */
function makePage(first: number, last: number) {
  const rows = Array.from({ length: last - first + 1 }, (_, at) => makeRow(first + at))
  return { rows, next: first === 0 ? null : (rows[0]?.id ?? null), older: first, searchedTo: undefined }
}
const listNumbers = ({ rows }: ListRange) => rows.map(({ id }) => Number(id.slice(2)))
const countDown = (from: number, to: number) => Array.from({ length: from - to + 1 }, (_, at) => from - at)

test('a changed delivery below the end of the list is counted, and gets no row until the list reaches it', () => {
  const newest = addPage(emptyRange, makePage(500, 699), filters)
  const changed = addChanges(newest, [makeRow(3), makeRow(700), makeRow(650, { hook: 'y' })], filters)
  expect(listNumbers(changed)).toEqual(countDown(700, 500))
  expect(changed.below).toEqual(['d-00003'])
  expect(changed.rows[50]).toMatchObject({ delivery: { hook: 'y' } })
  // the last one that changed is the last one, once
  expect(addChanges(changed, [makeRow(9), makeRow(3)], filters).below).toEqual(['d-00009', 'd-00003'])
  // a row that the filters leave out changes nothing
  expect(addChanges(newest, [makeRow(3)], { ...filters, hook: 'z' }).below).toEqual([])
  const all = addPage(addPage(changed, makePage(200, 499), filters), makePage(0, 199), filters)
  expect([listNumbers(all), all.below, all.next, all.older]).toEqual([countDown(700, 0), [], null, 0])
  // now the list ends with the oldest delivery, so every row has its place
  expect(addChanges(all, [makeRow(3, { hook: 'y' })], filters).below).toEqual([])
})

test('a list that is full ends earlier when new rows come, and says how many are older', () => {
  const full = addPage({ ...emptyRange, limit: 100 }, makePage(500, 599), filters)
  const later = addChanges(full, [makeRow(600), makeRow(601)], filters)
  expect([listNumbers(later), later.next, later.older]).toEqual([countDown(601, 502), 'd-00502', 502])
  // a change of a row that was cut is below the end
  expect(addChanges(later, [makeRow(501)], filters)).toMatchObject({ below: ['d-00501'], older: 502 })
  const extended = addPage({ ...later, limit: 200 }, makePage(402, 501), filters)
  expect([listNumbers(extended), extended.next, extended.older]).toEqual([countDown(601, 402), 'd-00402', 402])
})
