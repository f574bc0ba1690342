import { describe, expect, test } from 'vitest'
import type { PlannedAction } from '../../src/core/model/action.ts'
import type { Stage } from './store.ts'
import { claimOne } from './jobs.ts'
import { newTask } from './tasks.ts'
import { accepted, newDelivery, newEvent, newJob, newWake, noJobs, parked, planned, request } from './stage.ts'

export function describeReads(stage: () => Stage): void {
  describe('reads of a store', () => {
    test('deliveries() returns the newest deliveries, oldest first, and can be filtered by state', async () => {
      const { store, clock } = stage()
      const [a, b, c] = [
        newDelivery({ at: clock() }),
        newDelivery({ at: clock(), ...parked() }),
        newDelivery({ at: clock() }),
      ]
      for (const each of [a, b, c]) await store.append(each)
      const readIds = async (query: { limit: number; state?: 'parked' | 'accepted' }) =>
        (await store.deliveries(query)).map(({ deliveryId }) => deliveryId)
      expect(await readIds({ limit: 9 })).toEqual([a.id, b.id, c.id])
      expect(await readIds({ limit: 2 })).toEqual([b.id, c.id])
      expect(await readIds({ limit: 9, state: 'parked' })).toEqual([b.id])
      expect(await readIds({ limit: 1, state: 'accepted' })).toEqual([c.id])
    })

    test('the progress of runs and deliveries is read by their ids, and changes with each report', async () => {
      const { store, clock } = stage()
      const [job, other] = [newJob(), newJob()]
      const delivery = newDelivery({ at: clock(), jobs: [job, other] })
      const waiting = newDelivery({ at: clock(), ...parked() })
      for (const each of [delivery, waiting]) await store.append(each)
      const readProgress = async (id: string) => (await store.progress([id]))[0]
      const found = await store.progress([waiting.id, job.id, 'none', delivery.id, job.id])
      expect(new Map(found.map(({ id, state }) => [id, state]))).toEqual(
        new Map<string, string>([
          [job.id, 'queued'],
          [delivery.id, 'accepted'],
          [waiting.id, 'parked'],
        ]),
      )
      expect([found.length, await store.progress([])]).toEqual([3, []])
      const seen = new Set([(await readProgress(job.id))?.change])
      const held = await claimOne(store)
      expect(held.id).toBe(job.id)
      seen.add((await readProgress(job.id))?.change)
      const step = { name: 'run', state: 'done', at: clock(), result: 'Fine.' } as const
      await store.report(held, { steps: [step] })
      seen.add((await readProgress(job.id))?.change)
      expect([seen.size, (await readProgress(job.id))?.state]).toEqual([3, 'running'])
      await store.report(held, { outcome: { kind: 'done' } })
      expect((await readProgress(job.id))?.state).toBe('done')
      await store.endJob(other.id, { state: 'cancelled', reason: 'Enough.' })
      expect((await readProgress(other.id))?.state).toBe('cancelled')
    })

    test('deliveries can be filtered by hook, source, state and text at once, and are paged as without a filter', async () => {
      const { store, clock } = stage()
      const rows = [
        newDelivery({ at: clock(), hook: 'github', source: 'github', event: 'push', mappingId: 'Pushes' }),
        newDelivery({ at: clock(), hook: 'github', source: 'ci', event: undefined, mappingId: undefined }),
        newDelivery({ at: clock(), hook: 'stripe', source: undefined, event: 'invoice.paid', mappingId: 'money' }),
        newDelivery({ at: clock(), hook: 'stripe', source: 'github', event: 'push_%', ...parked() }),
      ]
      for (const each of rows) await store.append(each)
      const findIds = async (query: Omit<Parameters<typeof store.deliveries>[0], 'limit'>, limit = 9) =>
        (await store.deliveries({ limit, ...query })).map(({ deliveryId }) =>
          rows.findIndex(({ id }) => id === deliveryId),
        )
      expect(await findIds({ hook: 'github' })).toEqual([0, 1])
      expect(await findIds({ source: 'github' })).toEqual([0, 3])
      expect(await findIds({ hook: 'stripe', source: 'github' })).toEqual([3])
      expect(await findIds({ hook: 'stripe', state: 'accepted' })).toEqual([2])
      expect(await findIds({ text: 'PUSH' })).toEqual([0, 3])
      expect(await findIds({ text: 'pushes' })).toEqual([0])
      expect(await findIds({ text: 'push_%' })).toEqual([3])
      expect(await findIds({ text: 'push', state: 'parked' })).toEqual([3])
      expect(await findIds({ text: rows[2]?.id ?? '' })).toEqual([2])
      expect(await findIds({ text: rows[2]?.id.slice(1) ?? '' })).toEqual([])
      expect(await findIds({ text: '' })).toEqual([0, 1, 2, 3])
      for (const text of ['nothing', 'push|', 'push\\', 'p%h', 'x'.repeat(60_000)])
        expect(await findIds({ text })).toEqual([])
      expect(await findIds({ text: 'hub' }, 2)).toEqual([1, 3])
      expect(await findIds({ text: 'hub', before: rows[1]?.id ?? '' }, 2)).toEqual([0])
    })

    test('a search finds text in payloads, messages, errors and replies, but not in prompts or field names', async () => {
      const { store, clock } = stage()
      const job = newJob({
        planned: {
          ...planned('hook:pr:77'),
          action: { ...planned('x').action, message: 'Order O-13 äß' },
        } as PlannedAction,
      })
      const rows = [
        newDelivery({ at: clock(), ...parked({ request: request('{"order":"o-13","back":"a\\\\b","who":"Zoë"}') }) }),
        newDelivery({ at: clock(), jobs: [job] }),
        newDelivery({ at: clock(), jobs: [newWake('the disk of db-1 is full')] }),
        newDelivery({ at: clock(), jobs: [newJob(), newJob()] }),
        newDelivery({
          at: clock(),
          request: { ...request(), body: new Uint8Array([255, 92, 120, 121, 122]) },
          ringSize: 5,
        }),
        newDelivery({ at: clock(), ...parked({ request: request(`${'x'.repeat(40_000)}the end`) }) }),
      ]
      for (const each of rows) await store.append(each)
      const findIds = async (text: string) =>
        (await store.deliveries({ limit: 9, text })).map(({ deliveryId }) =>
          rows.findIndex(({ id }) => id === deliveryId),
        )
      expect(await findIds('o-13')).toEqual([0, 1])
      expect(await findIds('Zoë')).toEqual([0])
      expect(await findIds('a\\\\b')).toEqual([0])
      expect(await findIds('äß')).toEqual([1])
      expect(await findIds('hook:pr:77')).toEqual([1])
      expect(await findIds('DB-1 is')).toEqual([2])
      expect(await findIds('threw typeerror')).toEqual([0, 5])
      expect(await findIds('\\XYZ')).toEqual([4])
      for (const text of ['the end', 'message', 'detail', 'wakeMode', '\\000']) expect(await findIds(text)).toEqual([])
      const [first] = await store.claim({ limit: 1, leaseMs: 9_000, limits: {} })
      const messages = [
        { role: 'user', text: 'Is it mended?' } as const,
        { role: 'assistant', text: 'It is NOT' } as const,
      ]
      await store.report(
        { id: first?.id ?? '', fence: first?.fence ?? 0 },
        { messages, outcome: { kind: 'dead', error: '502 from upstream' } },
      )
      for (const text of ['it is not', '502 FROM']) expect(await findIds(text)).toEqual([1])
      expect(await findIds('mended?')).toEqual([])
    })

    test('a time range includes its first moment and excludes its last', async () => {
      const { store, clock } = stage()
      const rows = Array.from({ length: 4 }, () => {
        clock.advance(1_000)
        return newDelivery({ at: clock(), jobs: [newJob()] })
      })
      for (const each of rows) await store.append(each)
      const [one, two, three] = rows.map(({ receivedAt }) => receivedAt)
      const findIds = async (query: {
        since?: number | undefined
        until?: number | undefined
        text?: string
        hook?: string
      }) => (await store.deliveries({ limit: 9, ...query })).map(({ receivedAt }) => receivedAt)
      expect(await findIds({ since: two, until: three })).toEqual([two])
      expect(await findIds({ until: three })).toEqual([one, two])
      expect(await findIds({ since: three, hook: 'github' })).toHaveLength(2)
      expect(await findIds({ since: two, until: three, text: 'review' })).toEqual([two])
      expect(await findIds({ since: clock() + 1 })).toEqual([])
    })

    test('a delivery has the answer to its sender, and the time at which it was settled', async () => {
      const { store, clock } = stage()
      const answer = { status: 200, body: '{"ok":true}' }
      const waiting = newDelivery({ at: clock(), ...parked(), answer })
      await store.append(waiting)
      expect(await store.delivery(waiting.id)).toMatchObject({ answer, settledAt: undefined })
      clock.advance(5)
      await store.settle(waiting.id, accepted())
      expect(await store.delivery(waiting.id)).toMatchObject({ answer, settledAt: clock() })
    })

    test('the messages of one run are found among those of its session', async () => {
      const { store, clock } = stage()
      const jobs = [newJob(), newJob()]
      await store.append(newDelivery({ at: clock(), jobs }))
      for (const _ of jobs) {
        const { id, fence } = await claimOne(store)
        const messages = [{ role: 'user', text: `asked ${id}` } as const, { role: 'assistant', text: 'ok' } as const]
        await store.report({ id, fence }, { messages, outcome: { kind: 'done' } })
      }
      const [first] = jobs
      const readMessages = (agentId: string) =>
        store.messages({ agentId, sessionKey: 'hook:one', limit: 9, runId: first?.id ?? '' })
      expect((await readMessages('main')).map(({ text }) => text)).toEqual([`asked ${first?.id}`, 'ok'])
      expect(await readMessages('other')).toEqual([])
    })

    test('lanes() lists the lanes with unfinished jobs, the longest first', async () => {
      const { store, clock } = stage()
      const began = clock()
      await store.append(newDelivery({ at: clock(), jobs: [newJob({ lane: 'main/b' }), newJob()] }))
      clock.advance(1)
      await store.append(newDelivery({ at: clock(), jobs: [newJob({ lane: 'main/a' }), newJob({ lane: 'main/a' })] }))
      const a = { lane: 'main/a', jobs: 2, since: began + 1, running: false }
      const b = { lane: 'main/b', jobs: 1, since: began, running: false }
      expect(await store.lanes({ limit: 9 })).toEqual([a, b])
      expect(await store.lanes({ limit: 1 })).toEqual([a])
      const { id, fence } = await claimOne(store)
      expect(await store.lanes({ limit: 9 })).toEqual([a, { ...b, running: true }])
      await store.report({ id, fence }, { outcome: { kind: 'done' } })
      expect(await store.lanes({ limit: 9 })).toEqual([a])
    })

    test('a delivery is found by its id and by the id of one of its jobs', async () => {
      const { store, clock } = stage()
      const jobs = [newJob(), newJob()]
      const delivery = newDelivery({ at: clock(), ...parked({ jobs }) })
      await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
      await store.append(delivery)
      const record = await store.delivery(delivery.id)
      expect(record).toMatchObject({ deliveryId: delivery.id, problem: delivery.problem })
      expect(record?.jobs.map(({ id }) => id)).toEqual(jobs.map(({ id }) => id))
      expect(await store.delivery(jobs[1]?.id ?? '')).toEqual(record)
      expect(await store.delivery('nobody')).toBeUndefined()
    })

    test('the ids of deliveries, of their jobs and of tasks are found by their beginnings', async () => {
      const { store, clock } = stage()
      const job = newJob()
      const delivery = newDelivery({ at: clock(), jobs: [job] })
      await store.append(delivery)
      const task = newTask()
      await store.addTask(task)
      const find = (prefix: string, limit = 9) => store.idsFrom({ prefix, limit })
      expect(await find(delivery.id)).toEqual([{ id: delivery.id, deliveryId: delivery.id }])
      expect(await find(job.id)).toEqual([{ id: job.id, deliveryId: delivery.id }])
      expect(await find(task.id)).toEqual([{ id: task.id, deliveryId: undefined }])
      const all = [delivery.id, job.id, task.id].toSorted()
      expect((await find('')).map(({ id }) => id)).toEqual(all)
      expect((await find('', 2)).map(({ id }) => id)).toEqual(all.slice(0, 2))
      expect(await find('%')).toEqual([])
    })

    test('the request of a delivery can be read while the delivery is pending or parked, and later only if the request is retained', async () => {
      const { store, clock } = stage()
      const jobs = [newJob()]
      const waiting = newDelivery({ at: clock(), ...parked({ jobs, request: request('{"a":"\u00e9"}') }) })
      const retained = newDelivery({ at: clock(), request: request('{"b":2}') })
      const plain = newDelivery({ at: clock() })
      for (const each of [waiting, retained, plain]) await store.append(each)
      const readBody = async (id: string) => {
        const kept = await store.request(id)
        return kept && new TextDecoder().decode(kept.body)
      }
      expect((await store.request(waiting.id))?.head).toEqual(request().head)
      expect([await readBody(waiting.id), await readBody(retained.id)]).toEqual(['{"a":"\u00e9"}', '{"b":2}'])
      expect(await readBody(jobs[0]?.id ?? '')).toBe('{"a":"\u00e9"}')
      expect([await readBody(plain.id), await readBody('nobody')]).toEqual([undefined, undefined])
      await store.drop(waiting.id)
      expect([await readBody(waiting.id), await readBody(retained.id)]).toEqual([undefined, '{"b":2}'])
    })

    test('events() returns the newest events, oldest first', async () => {
      const { store, clock } = stage()
      for (const text of ['one', 'two', 'three']) {
        clock.advance(1)
        await store.append(
          newDelivery({ at: clock(), jobs: [newJob({ state: 'done', events: [newEvent({ text })] })] }),
        )
      }
      expect((await store.events({ limit: 2 })).map(({ text }) => text)).toEqual(['two', 'three'])
    })

    test('the deliveries before a given one are read page by page, and no delivery is lost or repeated', async () => {
      const { store, clock } = stage()
      // all deliveries have the same time, so their order is that of their arrival
      const all = Array.from({ length: 7 }, (_, index) => newDelivery({ at: clock(), ...(index % 2 ? parked() : {}) }))
      for (const each of all) await store.append(each)
      const readIds = async (query: Parameters<typeof store.deliveries>[0]) =>
        (await store.deliveries(query)).map(({ deliveryId }) => deliveryId)
      const read: string[] = []
      for (
        let page = await readIds({ limit: 2 });
        page.length > 0;
        page = await readIds({ limit: 2, before: read[0] })
      ) {
        read.unshift(...page)
      }
      expect(read).toEqual(all.map(({ id }) => id))
      expect(await readIds({ limit: 9, state: 'parked', before: all[4]?.id })).toEqual([all[1]?.id, all[3]?.id])
      expect(await readIds({ limit: 9, before: 'nobody' })).toEqual([])
    })

    test('a search in steps visits each delivery once, and ends at the oldest one', async () => {
      const { store, clock } = stage()
      const all = Array.from({ length: 9 }, () => newDelivery({ at: clock() }))
      expect(await store.stepBack({ rows: 2 })).toBeUndefined()
      for (const each of all) await store.append(each)
      const steps: string[][] = []
      for (let before: string | undefined; ;) {
        const from = (await store.stepBack({ before, rows: 2 }))?.id
        steps.push(
          (await store.deliveries({ limit: 9, before, from, text: 'hub' })).map(({ deliveryId }) => deliveryId),
        )
        if (from === undefined) break
        before = from
      }
      expect(steps.toReversed().flat()).toEqual(all.map(({ id }) => id))
      expect(steps.map(({ length }) => length)).toEqual([2, 2, 2, 2, 1])
      const [first, second] = all.map(({ id }) => id)
      expect(await store.stepBack({ before: second, rows: 1 })).toEqual({ id: first, receivedAt: all[0]?.receivedAt })
      expect(await store.stepBack({ before: second, rows: 1_000 })).toBeUndefined()
      expect(await store.stepBack({ before: 'nobody', rows: 1 })).toBeUndefined()
      const last = all.at(-1)?.id
      expect(await store.stepBack({ before: last, rows: 1 })).toMatchObject({ id: all.at(-2)?.id })
      expect(await store.stepBack({ before: last, after: all.at(-2)?.id, rows: 1 })).toBeUndefined()
      expect(await store.stepBack({ before: last, after: 'nobody', rows: 1 })).toBeUndefined()
      expect(await store.deliveries({ limit: 9, from: 'nobody' })).toEqual([])
      expect(await store.deliveries({ limit: 1, from: first })).toMatchObject([{ deliveryId: all.at(-1)?.id }])
    })

    test('the dead jobs before a given one are read page by page, and no job is lost or repeated', async () => {
      const { store, clock } = stage()
      const jobs = Array.from({ length: 5 }, () => newJob())
      await store.append(newDelivery({ at: clock(), jobs }))
      for (const _ of jobs) await store.report(await claimOne(store), { outcome: { kind: 'dead', error: 'no' } })
      const readIds = async (before?: string) => (await store.deadJobs({ limit: 2, before })).map(({ id }) => id)
      const [, second, , fourth] = jobs.map(({ id }) => id)
      expect(await readIds()).toEqual(jobs.slice(3).map(({ id }) => id))
      expect(await readIds(fourth)).toEqual(jobs.slice(1, 3).map(({ id }) => id))
      expect(await readIds(second)).toEqual(jobs.slice(0, 1).map(({ id }) => id))
      expect(await readIds('nobody')).toEqual([])
    })

    test('events or sessions of one moment are never split between two pages, and the pages lose and repeat nothing', async () => {
      const { store, clock } = stage()
      const names: string[] = []
      // four moments, with one, two, three and four events; each event is in another session
      for (const count of [1, 2, 3, 4]) {
        clock.advance(5)
        for (let n = 0; n < count; n += 1) {
          const sessionKey = `s${names.push('') - 1}`
          names[names.length - 1] = sessionKey
          const events = [newEvent({ sessionKey, text: sessionKey })]
          await store.append(newDelivery({ at: clock(), jobs: [newJob({ state: 'done', events })] }))
        }
      }
      const read: { [of in 'events' | 'sessions']: string[][] } = { events: [], sessions: [] }
      for (let before: number | undefined; ;) {
        const page = await store.events({ limit: 3, before })
        if (page.length === 0) break
        read.events.unshift(page.map(({ text }) => text))
        before = page[0]?.at
      }
      for (let before: number | undefined; ;) {
        const page = await store.sessions({ limit: 3, before })
        if (page.length === 0) break
        read.sessions.unshift(page.map(({ sessionKey }) => sessionKey).toSorted())
        before = page[0]?.updatedAt
      }
      const pages = [names.slice(0, 3), names.slice(3, 6), names.slice(6)]
      expect(read).toEqual({ events: pages, sessions: pages })
    })

    test('pages of events lose no event even if the clock was set back between two events', async () => {
      const { store, clock } = stage()
      for (const [text, step] of [
        ['a', 10],
        ['b', -7],
        ['c', 3],
      ] as const) {
        clock.advance(step)
        await store.append(
          newDelivery({ at: clock(), jobs: [newJob({ state: 'done', events: [newEvent({ text })] })] }),
        )
      }
      const read: string[] = []
      for (let before: number | undefined; ;) {
        const [oldest, ...others] = await store.events({ limit: 1, before })
        if (oldest === undefined) break
        expect(others).toEqual([])
        read.unshift(oldest.text)
        before = oldest.at
      }
      expect(read).toEqual(['b', 'c', 'a'])
    })

    test('text after a NUL character is stored', async () => {
      const { store, clock } = stage()
      await store.append(newDelivery({ at: clock(), jobs: [newJob({ events: [newEvent({ text: 'a\0b' })] })] }))
      expect((await store.events({ limit: 1 }))[0]?.text).toBe('a\uFFFDb')
    })

    test('a session is updated by its events and by the messages of its runs', async () => {
      const { store, clock } = stage()
      const buildEventJob = (sessionKey: string) => newJob({ state: 'done', events: [newEvent({ sessionKey })] })
      await store.append(newDelivery({ at: clock(), jobs: [buildEventJob('one')] }))
      clock.advance(5)
      await store.append(newDelivery({ at: clock(), jobs: [buildEventJob('two')] }))
      clock.advance(5)
      await store.append(newDelivery({ at: clock(), jobs: [newJob({ planned: planned('one') })] }))
      expect((await store.sessions({ limit: 9 })).map(({ sessionKey }) => sessionKey)).toEqual(['one', 'two'])
      await store.report(await claimOne(store), { messages: [{ role: 'user', text: 'hello' }] })
      expect(await store.sessions({ limit: 1 })).toMatchObject([
        { agentId: 'main', sessionKey: 'one', updatedAt: clock() },
      ])
    })

    test('messages() returns the newest messages of one session, oldest first', async () => {
      const { store, clock } = stage()
      await store.append(
        newDelivery({ at: clock(), jobs: [newJob({ planned: planned('one') }), newJob({ planned: planned('two') })] }),
      )
      const [one, two] = [await claimOne(store), await claimOne(store)]
      for (const text of ['a', 'b', 'c']) await store.report(one, { messages: [{ role: 'user', text }] })
      await store.report(two, { messages: [{ role: 'user', text: 'else' }] })
      const readTexts = async (agentId: string, limit: number) =>
        (await store.messages({ agentId, sessionKey: 'one', limit })).map(({ text }) => text)
      expect(await readTexts('main', 9)).toEqual(['a', 'b', 'c'])
      expect(await readTexts('main', 2)).toEqual(['b', 'c'])
      expect(await readTexts('other', 9)).toEqual([])
    })

    test('counts() returns the number of deliveries and jobs in every state, including zeros', async () => {
      const { store, clock } = stage()
      const nothing = { pending: 0, parked: 0, accepted: 0, skipped: 0, dropped: 0 }
      expect(await store.counts()).toEqual({
        deliveries: nothing,
        jobs: noJobs,
      })
      const waiting = [newDelivery({ at: clock(), ...parked() }), newDelivery({ at: clock(), ...parked() })] as const
      for (const each of waiting) await store.append(each)
      await store.append(newDelivery({ at: clock(), state: 'skipped' }))
      const jobs = [newJob({ lane: 'a' }), newJob({ lane: 'a' }), newJob({ state: 'done' }), newJob(), newJob()]
      await store.append(newDelivery({ at: clock(), jobs }))
      await claimOne(store)
      await store.report(await claimOne(store), { outcome: { kind: 'dead', error: 'no route' } })
      await store.drop(waiting[0].id)
      expect(await store.counts()).toEqual({
        deliveries: { pending: 0, parked: 1, accepted: 1, skipped: 1, dropped: 1 },
        jobs: { ...noJobs, queued: 2, running: 1, done: 1, dead: 1 },
      })
    })

    test('waitingBytes() counts the requests of parked deliveries and unfinished jobs, until they end', async () => {
      const { store, clock } = stage()
      expect(await store.waitingBytes()).toBe(0)
      const body = 'ä'.repeat(5_000)
      const kept = newDelivery({ at: clock(), ...parked({ request: request(body) }) })
      const other = newDelivery({ at: clock(), ...parked({ request: request(body) }) })
      await store.append(kept)
      const one = await store.waitingBytes()
      expect([one > 10_000, one < 11_000]).toEqual([true, true])
      await store.append(other)
      expect(await store.waitingBytes()).toBe(2 * one)
      // the delivery is parked again, without a new request to keep
      expect(await store.settle(kept.id, parked({ request: undefined }))).toBe(true)
      expect(await store.waitingBytes()).toBe(2 * one)
      await store.drop(other.id)
      expect(await store.waitingBytes()).toBe(one)

      const job = newJob({ planned: planned(`hook:${body}`) })
      expect(await store.settle(kept.id, accepted({ request: request(body), jobs: [job] }))).toBe(true)
      const queued = await store.waitingBytes()
      expect([queued > 10_000, queued < 11_000]).toEqual([true, true])
      await store.append(newDelivery({ at: clock(), jobs: [newJob({ state: 'done' })] }))
      const claimed = await claimOne(store)
      expect(await store.waitingBytes()).toBe(queued)
      await store.report(claimed, { outcome: { kind: 'dead', error: 'no route' } })
      expect(await store.waitingBytes()).toBe(0)
      await store.requeue(job.id)
      expect(await store.waitingBytes()).toBe(queued)
      await store.report(await claimOne(store), { outcome: { kind: 'done' } })
      expect(await store.waitingBytes()).toBe(0)
    })

    test('openJobs() returns the newest queued and running jobs of deliveries, page by page', async () => {
      const { store, clock } = stage()
      expect(await store.openJobs({ limit: 9 })).toEqual([])
      const [first, second, third] = [newJob(), newJob(), newJob()]
      await store.append(newDelivery({ at: clock(), jobs: [newJob({ state: 'done' }), first, second, third] }))
      expect(await store.addTask(newTask())).toBe(true)
      const readIds = async (limit: number, before?: string) =>
        (await store.openJobs({ limit, before })).map(({ id }) => id)
      expect(await readIds(9)).toEqual([first.id, second.id, third.id])
      const running = await claimOne(store)
      expect(await readIds(9)).toEqual([first.id, second.id, third.id])
      expect(await readIds(2)).toEqual([second.id, third.id])
      expect(await readIds(2, second.id)).toEqual([first.id])
      expect(await readIds(9, 'nobody')).toEqual([])
      await store.report(running, { outcome: { kind: 'done' } })
      expect(await readIds(9)).toHaveLength(2)
    })

    test('deadJobs() returns the newest dead jobs, tasks included', async () => {
      const { store, clock } = stage()
      expect(await store.deadJobs({ limit: 9 })).toEqual([])
      const [first, second] = [newJob(), newJob()]
      const delivery = newDelivery({ at: clock(), jobs: [newJob({ state: 'done' }), first, second] })
      await store.append(delivery)
      const task = newTask()
      expect(await store.addTask(task)).toBe(true)
      for (const error of ['no route', 'no model', 'no turn']) {
        await store.report(await claimOne(store), { outcome: { kind: 'dead', error } })
      }
      expect(await store.deadJobs({ limit: 9 })).toMatchObject([
        { id: first.id, deliveryId: delivery.id, state: 'dead', lastError: 'no route' },
        { id: second.id, deliveryId: delivery.id, state: 'dead', lastError: 'no model' },
        { id: task.id, deliveryId: undefined, state: 'dead', lastError: 'no turn' },
      ])
      expect((await store.deadJobs({ limit: 1 })).map(({ id }) => id)).toEqual([task.id])
      await store.requeue(first.id)
      expect((await store.deadJobs({ limit: 9 })).map(({ id }) => id)).toEqual([second.id, task.id])
    })

    test('cursors() returns the cursors whose names begin with the given text, ordered by name, and no others', async () => {
      const { store } = stage()
      for (const name of ['sender/b', 'sender/a%', 'sender', 'senders/x', 'sender/Z', 'other', 'sender/ä']) {
        await store.appendAll([], { name, from: undefined, to: `value of ${name}` })
      }
      expect(await store.cursors('sender/')).toEqual(
        ['sender/Z', 'sender/a%', 'sender/b', 'sender/ä'].map((name) => ({ name, value: `value of ${name}` })),
      )
      expect(await store.cursors('none/')).toEqual([])
    })

    test('a store that works reports no trouble', async () => {
      expect(await stage().store.health()).toMatchObject({ trouble: undefined })
    })
  })
}
