import { describe, expect, test } from 'vitest'
import { createEventLog, formatEventCursor } from '../../src/plugins/runners/mcp-events/event-log.ts'
import { createRunnerState } from '../../src/store/runner-state.ts'
import type { Stage } from './store.ts'

const day = 86_400_000

export function describeRunnerState(stage: () => Stage): void {
  const open = (id = 'out') => {
    const { store, clock } = stage()
    return createRunnerState({ store, id, clock })
  }

  describe('the values of a runner', () => {
    test('all changes of a write are stored, or none if a value is not what was read', async () => {
      const state = open()
      const until = stage().clock() + day
      const one = { key: 'one', from: undefined, to: { text: '1', until } }
      expect(await state.write([one, { key: 'two', from: undefined, to: { text: '2 2', until } }])).toBe(true)
      expect(await state.list('')).toEqual([
        { key: 'one', text: '1', until },
        { key: 'two', text: '2 2', until },
      ])
      const late = { key: 'one', from: { text: '0', until }, to: { text: '3', until } }
      expect(await state.write([{ key: 'three', from: undefined, to: { text: '3', until } }, late])).toBe(false)
      expect(await state.read('three')).toBeUndefined()
      expect(await state.write([one])).toBe(false)
      expect(await state.write([{ ...late, from: { text: '1', until } }])).toBe(true)
      expect(await state.read('one')).toEqual({ text: '3', until })
    })

    test('a value is gone when it is deleted or its time is over, and can be set again before and after a sweep', async () => {
      const { store, clock } = stage()
      const state = open()
      const set = (text: string) => state.write([{ key: 'one', from: undefined, to: { text, until: clock() + 1_000 } }])
      expect(await set('1')).toBe(true)
      clock.advance(1_000)
      expect(await state.read('one')).toBeUndefined()
      expect(await state.list('')).toEqual([])
      expect(await set('2')).toBe(true)
      expect(await state.write([{ key: 'one', from: await state.read('one'), to: undefined }])).toBe(true)
      expect(await state.read('one')).toBeUndefined()
      clock.advance(day)
      await store.sweep(day)
      expect(await store.cursors('runner/')).toEqual([])
      expect(await set('3')).toBe(true)
    })

    test('runners share no value, and a name is no prefix of another one', async () => {
      const until = stage().clock() + day
      await open('out').write([{ key: 'one', from: undefined, to: { text: '1', until } }])
      expect(await open('out2').read('one')).toBeUndefined()
      expect(await open('ou').list('')).toEqual([])
    })

    test.each(['', 'a\nb', 'a\u001fb', 'x'.repeat(201)])('the key %j is refused', async (key) => {
      await expect(open().read(key)).rejects.toThrow(TypeError)
    })
  })

  describe('the events of a runner', () => {
    const toEvent = (id: string, at: number, name = 'push') => ({ id, name, at, hops: 1, data: { id } })
    const from = { number: 0, mark: '00000000' }
    const readAll = async (log: ReturnType<typeof createEventLog>, after = from) =>
      (await log.read({ after, names: ['push'], limit: 100 })).events.map(({ id }) => id)

    test('events that two gateways append at the same time have one order without gaps, and each is there once', async () => {
      const { clock } = stage()
      const logs = [createEventLog(open(), clock), createEventLog(open(), clock)] as const
      const ids = Array.from({ length: 20 }, (_, index) => `run-${index}`)
      await Promise.all(ids.flatMap((id) => logs.map((log) => log.append(toEvent(id, clock())))))
      const found = await readAll(logs[0])
      expect(found.toSorted()).toEqual(ids.toSorted())
      expect((await logs[1].end()).number).toBe(20)
      expect(await readAll(logs[1])).toEqual(found)
    })

    test('a cursor continues after its event; one of before the kept events, or of another log, skips what is gone and no more', async () => {
      const { clock } = stage()
      const log = createEventLog(open(), clock)
      for (const id of ['a', 'b']) await log.append(toEvent(id, clock()))
      const after = await log.end()
      clock.advance(4 * day)
      for (const id of ['c', 'd']) await log.append(toEvent(id, clock()))
      expect(await log.find(after)).toEqual({ place: after, hasSkipped: false })
      expect(await readAll(log, after)).toEqual(['c', 'd'])
      clock.advance(4 * day)
      // a and b are gone, but nothing after b is
      expect(await log.find(after)).toEqual({ place: after, hasSkipped: false })
      const oldest = await log.find(from)
      expect(oldest.hasSkipped).toBe(true)
      expect(await readAll(log, oldest.place)).toEqual(['c', 'd'])
      for (const foreign of [
        { number: 3, mark: 'ffffffff' },
        { number: 99, mark: after.mark },
      ]) {
        const found = await log.find(foreign)
        expect(found.hasSkipped).toBe(true)
        expect(await readAll(log, found.place)).toEqual(['c', 'd'])
      }
      clock.advance(4 * day)
      const none = await log.find(from)
      expect([formatEventCursor(none.place), none.hasSkipped]).toEqual([formatEventCursor(await log.end()), true])
    })

    test('events that are too old for a client are left out', async () => {
      const { clock } = stage()
      const log = createEventLog(open(), clock)
      for (const id of ['a', 'b', 'c']) {
        await log.append(toEvent(id, clock()))
        clock.advance(1_000)
      }
      const { place, hasSkipped } = await log.find(from, clock() - 2_000)
      expect([await readAll(log, place), hasSkipped]).toEqual([['b', 'c'], true])
    })
  })
}
