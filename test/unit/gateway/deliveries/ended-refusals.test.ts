// Refusals of known senders are open until the sender is accepted, or until a person ends them.
import { expect, onTestFinished, test } from 'vitest'
import { endRefusals, isEnded, listOpenRefusals } from '../../../../src/gateway/deliveries/senders/ended.ts'
import {
  addRefused,
  addSeen,
  createRecord,
  readRecords,
  updateRecord,
} from '../../../../src/gateway/deliveries/senders/record.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import { createClock } from '../../../contract/stage.ts'

const at = 1_700_000_000_000
const key = { hook: 'plain', source: '' }
const refuse = (count = 1, firm = count) =>
  ({ code: 'unauthorized', since: at, last: at, count, firm, why: 'wrong signature', requestId: 'r1' }) as const
const accept = (time: number) => ({ first: time, last: time, count: 1, networks: [], headers: {} })

test('refusals of a sender are open until it is accepted again; those that only resemble one must be three', () => {
  const refused = addRefused(createRecord(key, at - 1_000), refuse())
  expect(listOpenRefusals([refused])).toMatchObject([{ hook: 'plain', code: 'unauthorized', count: 1 }])
  expect(isEnded({ hook: 'plain', code: 'unauthorized', at }, [refused])).toBe(false)
  const loose = addRefused(createRecord(key, at - 1_000), refuse(2, 0))
  expect([listOpenRefusals([loose]), listOpenRefusals([addRefused(loose, refuse(1, 0))]).length]).toEqual([[], 1])
  const accepted = addSeen(refused, accept(at + 5), [])
  expect(listOpenRefusals([accepted])).toEqual([])
  // the limit of rates has the cause of the wrong proof
  expect(isEnded({ hook: 'plain', code: 'rate-limited', at }, [accepted])).toBe(true)
  expect(isEnded({ hook: 'plain', code: 'unauthorized', at: at + 6 }, [accepted])).toBe(false)
  expect(isEnded({ hook: 'other', code: 'unauthorized', at }, [accepted])).toBe(false)
})

test('a person ends the refusals of one hook with one cause, and the next refusal is open again', async () => {
  const store = createMemoryStore({ clock: createClock() })
  onTestFinished(() => store.close())
  for (const hook of ['plain', 'other'])
    await updateRecord(store, { ...key, hook }, () => addRefused(createRecord({ ...key, hook }, at - 1_000), refuse()))
  const listHooks = async () => listOpenRefusals(await readRecords(store)).map(({ hook }) => hook)
  const ended = { hook: 'plain', code: 'unauthorized', at: at + 10 } as const
  expect(await endRefusals(store, { ...ended, code: 'body-invalid' })).toBe(0)
  expect([await endRefusals(store, ended), await listHooks()]).toEqual([1, ['other']])
  expect([await endRefusals(store, ended), isEnded({ ...ended, at }, await readRecords(store))]).toEqual([0, true])
  await updateRecord(
    store,
    key,
    (before) => before && addRefused(before, { ...refuse(), since: at + 20, last: at + 20 }),
  )
  expect(await listHooks()).toEqual(['other', 'plain'])
})
