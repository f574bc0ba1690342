// The rows of the list: their state, their age, which rows are folded, and the bins of the histogram.
import { describe, expect, test } from 'vitest'
import { formatAge, formatLongDay, toLocalTimes } from '../../../src/inspector/format.ts'
import {
  buildBins,
  countJobs,
  findRowState,
  isWithin,
  matchesFilters,
  toListItems,
  toListRow,
  toRefusalRow,
} from '../../../src/inspector/rows.ts'
import type { DeliveryRow, JobFields } from '../../../src/model/api/answers.ts'
import type { RefusalFields } from '../../../src/model/api/refusals.ts'

const noJobs = {
  queued: 0,
  running: 0,
  done: 0,
  dead: 0,
  failing: 0,
  dropped: 0,
  superseded: 0,
  cancelled: 0,
  expired: 0,
  skipped: 0,
}
const noFilters = { state: '', hook: '', source: '', q: '', since: '', until: '' }

function makeRow(
  fields: Omit<Partial<DeliveryRow>, 'jobs'> & { jobs?: Partial<DeliveryRow['jobs']>; at?: number } = {},
) {
  const { at = Date.now(), jobs, ...others } = fields
  return toListRow({
    deliveryId: `d-${at}`,
    receivedAt: new Date(at).toISOString(),
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
    ...others,
    jobs: { ...noJobs, ...jobs },
  })
}

let requests = 0
function makeRefusal(fields: Partial<RefusalFields> = {}) {
  requests += 1
  return toRefusalRow({
    requestId: `r-${requests}`,
    receivedAt: Date.now(),
    client: '203.0.113.9',
    credential: 'none',
    path: '/hooks/wp-login',
    nearestHook: null,
    signature: null,
    status: 401,
    code: 'unauthorized',
    error: 'No valid credential.',
    reason: 'No valid credential.',
    trace: [],
    proofs: [],
    expects: [],
    isStranger: true,
    isKept: false,
    ...fields,
  })
}

describe('the age of a row', () => {
  const now = new Date(2026, 10, 23, 15, 30).getTime()
  const toAge = (ms: number) => formatAge(now - ms, now)
  const hour = 3_600_000

  test('a recent time is shown as an age, and an older one as a day or a date', () => {
    expect([toAge(12_345), toAge(5 * 60_000), toAge(3 * hour), toAge(-5)]).toEqual(['12 s', '5 min', '3 h', '0 s'])
    expect([toAge(42 * hour), toAge(19 * 24 * hour), toAge(400 * 24 * hour)]).toEqual([
      'Sat 21:30',
      '4 Nov 15:30',
      '19 Oct 2025',
    ])
  })

  test('an age fits into twelve characters, however old the row is', () => {
    for (let days = 0; days < 800; days += 1) expect(toAge(days * 23.7 * hour).length).toBeLessThanOrEqual(12)
  })

  test('the heading of a day is today, yesterday or a date', () => {
    expect([0, 16 * hour, 42 * hour].map((ms) => formatLongDay(now - ms, now))).toEqual([
      'today',
      'yesterday',
      expect.stringMatching(/^Saturday,? 21 November 2026$/),
    ])
  })
})

test('each form of a UTC time in a sentence is shown as a time of the reader', () => {
  const at = new Date(2026, 10, 23, 15, 30, 10)
  const iso = at.toISOString()
  const [day, time] = [iso.slice(0, 10), iso.slice(11, 19)]
  const moments = [iso, `${day} ${time}Z`, `${time}Z`, `${day}T${time}Z`]
  expect(moments.map((moment) => toLocalTimes(`until ${moment}.`, at.getTime()))).toEqual(
    moments.map(() => 'until 15:30:10.'),
  )
  expect(toLocalTimes(`since ${day} ${time.slice(0, 5)}Z`, at.getTime())).toBe('since 15:30:00')
  expect(toLocalTimes('99:99:99Z 12:00:00 v12:00Zeta', at.getTime())).toBe('99:99:99Z 12:00:00 v12:00Zeta')
})

describe('the state of a row', () => {
  test('a queued run is failing if its last attempt failed, and not if it waits with the error of an older one', () => {
    const job: JobFields = {
      jobId: 'j',
      runId: 'j',
      deliveryId: 'd',
      kind: 'agent',
      agentId: 'main',
      sessionKey: 'hook:x',
      state: 'queued',
      attempts: 0,
      lastError: 'The budget is used up.',
      failingSince: null,
      endedBy: null,
      failures: [],
      steps: [],
      posts: [],
    }
    const countFailing = (fields: Partial<JobFields>) => countJobs([{ ...job, ...fields }]).failing
    expect(countFailing({})).toBe(0)
    expect(countFailing({ attempts: 1 })).toBe(1)
    expect(countFailing({ failingSince: '2026-11-23T15:30:00.000Z' })).toBe(1)
    expect(countFailing({ attempts: 1, state: 'running' })).toBe(0)
  })

  test('a row shows the most urgent state among the delivery and its jobs', () => {
    const toWord = (jobs: Partial<DeliveryRow['jobs']>, state: DeliveryRow['state'] = 'accepted') =>
      findRowState(makeRow({ state, jobs }))
    expect(toWord({ dead: 1, queued: 1, failing: 1 })).toBe('dead')
    expect(toWord({ queued: 2, failing: 1, running: 1 })).toBe('failing')
    expect(toWord({ running: 1, queued: 1 })).toBe('running')
    expect(toWord({ queued: 1, done: 3 })).toBe('waiting')
    expect(toWord({ done: 1 })).toBe('done')
    expect(toWord({}, 'pending')).toBe('waiting')
    expect(toWord({}, 'parked')).toBe('parked')
  })

  test('a run that a person dropped is shown as dropped, not as dead', () => {
    expect(findRowState(makeRow({ jobs: { dropped: 1, done: 1 } }))).toBe('dropped')
    expect(findRowState(makeRow({ jobs: { dead: 1, dropped: 1 } }))).toBe('dead')
  })

  test('a state filter shows the rows in its state, and the filter waiting shows all rows that have not ended', () => {
    const [failing, running, done] = [{ queued: 1, failing: 1 }, { running: 1 }, { done: 1 }].map((jobs) =>
      makeRow({ jobs }),
    )
    const shown = (state: string) =>
      [failing, running, done].filter((row) => row && matchesFilters(row, { ...noFilters, state }))
    expect(shown('waiting')).toEqual([failing, running])
    expect(shown('done')).toEqual([done])
    expect(shown('')).toHaveLength(3)
    expect(shown('refused')).toEqual([])
  })
})

describe('the items of the list of deliveries', () => {
  test('refusals of the same unknown client are one row with their number, up to the next delivery', () => {
    const rows = [
      makeRefusal(),
      makeRefusal(),
      makeRefusal({ client: '198.51.100.7' }),
      makeRefusal(),
      makeRow(),
      makeRefusal(),
    ]
    const items = toListItems(rows)
    expect(items.map((item) => (item.kind === 'refusal' ? [item.id, item.times] : item.kind))).toEqual([
      [rows[0]?.id, 3],
      [rows[2]?.id, 1],
      'delivery',
      [rows[5]?.id, 1],
    ])
    expect(toListItems(rows, { showsStrangers: true })).toHaveLength(6)
  })

  test('refusals of a hook for one reason are one row a day, at the place of the newest, until the row is opened', () => {
    const signed = { isStranger: false, hook: 'signed', code: 'unauthorized' }
    const rows = [
      makeRefusal(signed),
      makeRow(),
      makeRefusal({ ...signed, code: 'body-invalid' }),
      makeRefusal(signed),
      makeRefusal({ ...signed, hook: 'other' }),
      makeRefusal({ ...signed, receivedAt: Date.now() - 24 * 3_600_000 }),
    ]
    const show = (open?: ReadonlySet<string>) =>
      toListItems(rows, open && { open }).map((item) => (item.kind === 'refusal' ? [item.id, item.times] : item.kind))
    const [newest, , other, second, third, old] = rows.map(({ id }) => id)
    expect(show()).toEqual([[newest, 2], 'delivery', [other, 1], [third, 1], 'day', [old, 1]])
    const open = new Set(['signed unauthorized'])
    expect(show(open)).toEqual([[newest, 2], 'delivery', [other, 1], [second, 1], [third, 1], 'day', [old, 1]])
  })

  test('each day of the list except today has a heading', () => {
    const day = 24 * 3_600_000
    const rows = [0, day, day, 3 * day].map((ms) => makeRow({ at: Date.now() - ms }))
    expect(toListItems(rows).map(({ kind }) => kind)).toEqual([
      'delivery',
      'day',
      'delivery',
      'delivery',
      'day',
      'delivery',
    ])
  })
})

describe('the bins of the histogram', () => {
  test('each row of the list is in the one bin of its time, and a refusal of an unknown client is not counted as a failure', () => {
    const rows = [
      makeRefusal({ receivedAt: 148_000, isStranger: false }),
      makeRefusal({ receivedAt: 147_500 }),
      makeRefusal({ receivedAt: 100_000, isStranger: false }),
    ]
    const bins = buildBins(rows)
    expect(bins.reduce((sum, { all }) => sum + all, 0)).toBe(3)
    expect(bins.reduce((sum, { failed }) => sum + failed, 0)).toBe(2)
    for (const { at } of rows) {
      const own = bins.filter(({ from, until }) => isWithin(at, { since: String(from), until: String(until) }))
      expect(own).toHaveLength(1)
    }
  })

  test('a list of fewer than two rows has no bins, and a blank time filter includes every moment', () => {
    expect(buildBins([makeRefusal()])).toEqual([])
    expect(isWithin(5, { since: '', until: '' })).toBe(true)
    expect(isWithin(5, { since: '5', until: '6' })).toBe(true)
    expect(isWithin(6, { since: '5', until: '6' })).toBe(false)
  })
})
