// Which senders are reported to the operator: senders that were accepted before and are refused now or silent, and no stranger.
import { describe, expect, test } from 'vitest'
import { listSenders } from '../../../../src/gateway/deliveries/senders/list.ts'
import { createSenderNotes } from '../../../../src/gateway/deliveries/senders/notes.ts'
import { readRecords } from '../../../../src/gateway/deliveries/senders/record.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import type { Store } from '../../../../src/store/store.ts'
import { toGeneration, toTestDelivery } from '../../core/mapping/decide.ts'
import { createSenderStage, day, github, hour, minute, monday, type Sender, wrongSignature } from './sender-stage.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

const trace = [wrongSignature]
/** An attacker who knows the URL and the documentation of the sender, in another network. */
const stranger: Sender = {
  ...github,
  client: '185.7.7.7',
  headers: { ...github.headers, 'x-github-hook-id': '100000001' },
}
const local: Sender = { hook: 'github', client: '127.0.0.1', headers: { 'user-agent': 'Acme/2' } }

async function openKnown(sender: Sender = github, options: Parameters<typeof createSenderStage>[0] = {}) {
  const stage = createSenderStage(options)
  for (let count = 0; count < 4; count += 1) {
    stage.accept(sender)
    await stage.pass(minute)
  }
  return stage
}

describe('a sender that was accepted before', () => {
  test('refusals of a known sender are reported once within five minutes, with their number, the first reason and the next command', async () => {
    const stage = await openKnown()
    for (let count = 0; count < 30; count += 1) {
      stage.refuse(github, { trace, code: count > 20 ? 'rate-limited' : 'unauthorized' })
      if (count >= 5) await stage.pass(minute)
    }
    expect(stage.told).toHaveLength(1)
    expect(stage.told[0]?.at).toBeLessThanOrEqual(monday + 9 * minute)
    expect(stage.texts()[0]).toBe(
      'Hookloom: GitHub (the hook "github") was accepted before and has been refused since 00:04 UTC: 6 requests, 401 unauthorized. ' +
        'First reason: The signature is wrong. If the secret has changed at the sender, put the new one into .env; ' +
        'then "hookloom retry --refused" runs the requests that are kept. "hookloom list --refused" shows each reason.',
    )
  })

  test('the end of the refusals is reported once the sender is accepted again and nothing more is refused', async () => {
    const stage = await openKnown()
    for (let count = 0; count < 20; count += 1) {
      stage.refuse(github, { trace })
      await stage.pass(minute)
    }
    stage.accept(github)
    await stage.pass(10 * minute)
    expect(stage.told).toHaveLength(1)
    await stage.pass(10 * minute)
    expect(stage.texts()[1]).toMatch(
      /GitHub .* is accepted again\. Refused before: 20 requests from 00:04 UTC to 00:23 UTC/,
    )
    await stage.pass(3 * hour)
    expect(stage.told).toHaveLength(2)
  })

  test('a second outage is reported although the first one was repaired only minutes ago', async () => {
    const stage = await openKnown()
    for (let count = 0; count < 4; count += 1) {
      stage.refuse(github, { trace })
      await stage.pass(minute)
    }
    expect(stage.told).toHaveLength(1)
    await stage.pass(4 * minute)
    stage.accept(github)
    const repairedAt = stage.clock()
    await stage.pass(minute)
    const [{ refused } = { refused: [] }] = await listSenders(stage.store, builtInSenders)
    expect(refused[0]).toMatchObject({ count: 4, acceptedAt: new Date(repairedAt).toISOString() })
    await stage.pass(2 * minute)
    stage.refuse(github, { trace })
    await stage.pass(6 * minute)
    expect(stage.texts()[1]).toMatch(/refused since 00:15 UTC: 1 request,/)
  })

  test('a sender that is accepted and refused in turns for hours is reported at most twice an hour', async () => {
    const stage = await openKnown()
    for (let round = 0; round < 18; round += 1) {
      for (let count = 0; count < 3; count += 1) stage.refuse(github, { trace })
      await stage.pass(5 * minute)
      stage.accept(github)
      await stage.pass(5 * minute)
    }
    const refused = stage.texts().filter((text) => text.includes('has been refused since'))
    expect(refused.length).toBeGreaterThan(1)
    expect(refused.length).toBeLessThanOrEqual(6)
  })

  test('refusals that could not be written are counted together with those that came meanwhile', async () => {
    const memory = createMemoryStore({ clock: () => monday })
    let onWrite: (() => void) | undefined
    const store = new Proxy(memory, {
      get: (target, name) => (name === 'appendAll' ? appendAll : Reflect.get(target, name)),
    })
    const stage = await openKnown(github, { store })
    stage.refuse(github, { trace })
    onWrite = () => {
      stage.refuse(github, { trace })
      throw new Error('the disk is full')
    }
    await stage.pass(minute)
    onWrite = undefined
    await stage.pass(minute)
    expect(stage.texts()[0]).toContain('2 requests, 401 unauthorized')

    async function appendAll(...given: Parameters<Store['appendAll']>) {
      const [, move] = given
      if (move !== undefined && 'name' in move && move.name.startsWith('sender/')) onWrite?.()
      return memory.appendAll(...given)
    }
  })

  test('the gateway ends its look at the senders and reports, although requests of the sender come during each write', async () => {
    const memory = createMemoryStore({ clock: () => monday })
    let onWrite = () => {}
    let writes = 0
    const store = new Proxy(memory, {
      get: (target, name) => (name === 'appendAll' ? appendAll : Reflect.get(target, name)),
    })
    const stage = await openKnown(github, { store })
    stage.accept(github)
    stage.refuse(github, { trace })
    onWrite = () => {
      writes += 1
      if (writes > 100) return
      stage.accept(github)
      stage.refuse(github, { trace })
    }
    await stage.pass(minute)
    // one write for the accepted requests, one for the refused ones, one for the message
    expect([writes, stage.told.length]).toEqual([3, 1])
    onWrite = () => {}
    await stage.look()
    const [{ requests, refused } = { requests: 0, refused: [] }] = await listSenders(stage.store, builtInSenders)
    expect([requests, refused.map(({ count }) => count)]).toEqual([4 + 1 + 3, [1 + 3]])

    async function appendAll(...given: Parameters<Store['appendAll']>) {
      const [, move] = given
      if (move !== undefined && 'name' in move && move.name.startsWith('sender/')) onWrite()
      return memory.appendAll(...given)
    }
  })

  test('another cause of refusals is reported separately', async () => {
    const stage = await openKnown()
    stage.refuse(github, { trace })
    stage.refuse(github, { code: 'body-too-large' })
    stage.refuse(github, { code: 'payload-invalid', trace: [{ mappingId: 'github', matched: true, why: '' }] })
    await stage.pass(minute)
    expect(stage.texts().map((text) => /\d{3} [a-z-]+\./.exec(text)?.[0])).toEqual([
      '401 unauthorized.',
      '413 body-too-large.',
      '400 payload-invalid.',
    ])
    // the only key with this name: no mapping has one
    expect(stage.texts()[1]).toContain('Increase server.maxBodyBytes, or let the sender send less.')
  })

  test('the report about the built-in hook names the field that is wrong, and the one about a mapping does not', async () => {
    const error = 'channel: expected one of "last", "telegram", found a string.'
    for (const [hook, reason] of [
      ['agent', error],
      ['github', 'A field is missing or of the wrong type.'],
    ] as const) {
      const sender = { ...github, hook }
      const stage = await openKnown(sender)
      stage.refuse(sender, { code: 'payload-invalid', hasHookToken: true, error })
      await stage.pass(minute)
      expect(stage.texts()[0]).toContain(
        `First reason: ${reason} Compare the fields that the hook expects with what the sender sends now.`,
      )
    }
  })

  test('refusals from another network are reported if they have the id of the sender’s webhook', async () => {
    const stage = await openKnown()
    stage.refuse({ ...github, client: '9.9.9.9' }, { trace })
    await stage.pass(minute)
    expect(stage.told).toHaveLength(1)
  })

  test('refusals are reported even if the hook was removed', async () => {
    const stage = await openKnown()
    stage.edit([])
    stage.refuse(github, { code: 'hook-unknown' })
    await stage.pass(minute)
    expect(stage.texts()[0]).toContain('No mapping has this name any more')
  })

  test('refusals that are the fault of the gateway are not reported', async () => {
    const stage = await openKnown()
    stage.refuse(github, { code: 'store-unavailable' })
    stage.refuse(github, { code: 'overloaded' })
    await stage.pass(hour)
    expect(stage.told).toEqual([])
  })

  test('a refusal with the hook token is reported from any network', async () => {
    const stage = await openKnown()
    stage.refuse({ ...stranger, client: '9.9.9.9' }, { code: 'body-too-large', hasHookToken: true })
    await stage.pass(minute)
    expect(stage.told).toHaveLength(1)
  })

  test('refusals through a local proxy are reported when there are three and no request was accepted', async () => {
    const stage = await openKnown(local)
    stage.refuse(local, { trace })
    stage.refuse(local, { trace })
    stage.accept(local)
    await stage.pass(minute)
    stage.refuse(local, { trace })
    await stage.pass(minute)
    expect(stage.told).toEqual([])
    for (let count = 0; count < 3; count += 1) stage.refuse({ ...local, client: '127.0.0.1' }, { trace })
    await stage.pass(25 * hour)
    stage.refuse(local, { trace })
    stage.refuse(local, { trace })
    stage.refuse(local, { trace })
    await stage.pass(minute)
    expect(stage.told).toHaveLength(1)
  })

  test('if an alert about a sender cannot be queued, it is queued a minute later', async () => {
    let canTell = false
    const stage = await openKnown(github, { canTell: () => canTell })
    stage.refuse(github, { trace })
    await stage.pass(minute)
    canTell = true
    await stage.pass(minute)
    expect(stage.told).toHaveLength(1)
  })

  test('refusals at two gateways are reported once, by the gateway that judges the senders, and not again after a restart', async () => {
    const stage = await openKnown()
    const other = createSenderStage({ store: stage.store, isHeld: () => false })
    await other.look()
    other.refuse(github, { trace })
    stage.refuse(github, { trace })
    await other.look()
    await stage.pass(minute)
    expect([stage.told.length, other.told.length]).toEqual([1, 0])
    expect(stage.texts()[0]).toContain('2 requests')
    stage.restart()
    await stage.pass(hour)
    expect(stage.told).toHaveLength(1)
  })
})

describe('a store with the maximum number of senders', () => {
  const listHooks = async ({ store }: ReturnType<typeof createSenderStage>) =>
    (await listSenders(store, builtInSenders)).map(({ hook }) => hook)

  /** The senders of a thousand hooks, whose last requests came in the last hour. */
  async function openFull() {
    const stage = createSenderStage()
    const hooks = Array.from({ length: 1_000 }, (_, index) => `hook-${index}`)
    await stage.recordPast(hooks.map((hook) => ({ ...github, hook, source: 'github', at: monday })))
    stage.setTime(monday + hour)
    await stage.look()
    return stage
  }

  test('the gateway serves requests between two senders that are judged', async () => {
    const stage = await openFull()
    let turns = 0
    let isOver = false
    const count = () => {
      turns += 1
      if (!isOver) setImmediate(count)
    }
    setImmediate(count)
    await stage.look()
    isOver = true
    expect(turns).toBeGreaterThan(900)
  })

  test('senders without a request for 90 days make room for a new one, and are new themselves when they send again', async () => {
    const stage = await openFull()
    stage.accept({ ...github, hook: 'hook-7' })
    await stage.pass(minute)
    stage.setTime(monday + hour + 90 * day)
    await stage.look()
    stage.accept({ ...github, hook: 'new' })
    await stage.look()
    expect(await listHooks(stage)).toEqual(['hook-7', 'new'])
    stage.setTime(stage.clock() + minute)
    stage.accept({ ...github, hook: 'hook-8' })
    await stage.look()
    expect(await listSenders(stage.store, builtInSenders)).toMatchObject([
      { hook: 'hook-7', requests: 2 },
      { hook: 'new', requests: 1 },
      { hook: 'hook-8', requests: 1, since: new Date(stage.clock()).toISOString() },
    ])
  })

  test('senders with a request in the last 90 days keep their records, and a further one gets none', async () => {
    const stage = await openFull()
    stage.setTime(monday + 89 * day)
    await stage.look()
    stage.accept({ ...github, hook: 'new' })
    await stage.look()
    const hooks = await listHooks(stage)
    expect(stage.warnings).toEqual(['there are records of 1000 senders: further senders are not watched'])
    expect([hooks.length, hooks.includes('new')]).toEqual([1_000, false])
  })
})

test('the first request of a sender makes the gateway look at the senders early, unless no record can be made for it', () => {
  let isFull = false
  let looks = 0
  const generation = toGeneration([])
  const notes = createSenderNotes({
    store: createMemoryStore({ clock: () => monday }),
    generation: () => generation,
    clock: () => monday,
    listRecords: () => [],
    isFull: () => isFull,
    onNew: () => void (looks += 1),
  })
  const accept = (label: string) => {
    const request = { client: github.client, hook: generation.findHook(label), label }
    notes.noteAccepted(toTestDelivery(label, {}, github), request)
  }
  accept('a')
  accept('a')
  expect(looks).toBe(1)
  isFull = true
  accept('b')
  expect(looks).toBe(1)
})

describe('an unknown client', () => {
  test('an unknown client that copies all public facts of a sender causes no message', async () => {
    const stage = await openKnown()
    for (let count = 0; count < 100; count += 1) stage.refuse({ ...stranger, client: `185.7.${count}.7` }, { trace })
    await stage.pass(hour)
    expect(stage.told).toEqual([])
  })

  test('an unknown client causes no message at a hook that never accepted a sender', async () => {
    const stage = createSenderStage()
    for (let count = 0; count < 100; count += 1) stage.refuse(github, { trace })
    await stage.pass(hour)
    expect(stage.told).toEqual([])
  })

  test('an unknown client in the network of a sender, with another program, causes no message', async () => {
    const stage = await openKnown()
    stage.refuse({ ...github, headers: { 'user-agent': 'curl/8' } }, { trace })
    await stage.pass(hour)
    expect(stage.told).toEqual([])
  })
})

describe('a silent sender', () => {
  /** Sends a request every four minutes for some days. */
  async function openSteady(days: number) {
    const stage = createSenderStage()
    const requests = Array.from({ length: (days * day) / (4 * minute) }, (_, index) => ({
      ...github,
      source: 'github',
      at: monday + index * 4 * minute,
    }))
    await stage.recordPast(requests)
    stage.setTime(monday + days * day - 4 * minute)
    await stage.look()
    return stage
  }

  test('a silence longer than ten times the usual gap is reported, and so is its end', async () => {
    const stage = await openSteady(3)
    await stage.pass(40 * minute)
    expect(stage.told).toEqual([])
    await stage.pass(5 * minute)
    expect(stage.texts()).toEqual([
      expect.stringMatching(
        /^Hookloom: nothing has come from GitHub \(the hook "github"\) since (2026-11-04 )?23:56 UTC, usually every 4 min/,
      ),
    ])
    await stage.pass(day)
    stage.accept(github)
    await stage.pass(minute)
    expect(stage.texts().slice(1)).toEqual([expect.stringContaining('sends again. It was silent from')])
  })

  test('a silence is not reported before there are three days of history', async () => {
    const stage = await openSteady(2)
    await stage.pass(day)
    expect(stage.told).toEqual([])
  })

  test('a silence is not reported for a time in which the gateway did not listen', async () => {
    const stage = await openSteady(3)
    stage.setTime(stage.clock() + 9 * hour)
    await stage.pass(30 * minute)
    expect(stage.told).toEqual([])
    await stage.pass(15 * minute)
    expect(stage.told).toHaveLength(1)
  })

  test('a silence is reported although the clock of the gateway was years ahead for a minute', async () => {
    const stage = await openSteady(3)
    const now = stage.clock()
    stage.setTime(now + 3_650 * day)
    await stage.look()
    stage.setTime(now + minute)
    await stage.pass(46 * minute)
    expect(stage.texts()).toEqual([expect.stringContaining('usually every 4 min')])
  })

  test('a sender whose request came while the clock was years ahead is learnt anew, and its silence is reported', async () => {
    const stage = await openSteady(7)
    const now = stage.clock()
    stage.setTime(now + 3_650 * day)
    stage.accept(github)
    await stage.look()
    stage.setTime(now)
    await stage.look()
    for (let count = 0; count < (3 * day) / (4 * minute); count += 1) {
      stage.setTime(stage.clock() + 4 * minute)
      stage.accept(github)
      await stage.look()
    }
    expect(stage.told).toEqual([])
    await stage.pass(46 * minute)
    expect(stage.texts()).toEqual([expect.stringContaining('usually every 4 min')])
  })

  test('a clock that is a year behind for some minutes changes nothing that is known of a sender', async () => {
    const stage = await openSteady(3)
    const before = await readRecords(stage.store)
    stage.setTime(stage.clock() - 365 * day)
    await stage.pass(10 * minute)
    expect(await readRecords(stage.store)).toEqual(before)
  })

  test('a silence is not reported if the hook was removed, or while refusals of the sender are reported', async () => {
    const gone = await openSteady(3)
    gone.edit([])
    await gone.pass(2 * hour)
    expect(gone.told).toEqual([])
    const refused = await openSteady(3)
    for (let count = 0; count < 30; count += 1) {
      await refused.pass(4 * minute)
      refused.refuse(github, { trace })
    }
    expect(refused.told.map(({ cause }) => cause.split(' ')[0])).toEqual(['refused'])
  })
})

describe('expectEvery', () => {
  const mappings = [{ id: 'backup', match: { path: 'backup' }, messageTemplate: 'x', expectEvery: '1h' }]
  const backup: Sender = { hook: 'backup', client: '10.0.0.7', headers: { 'user-agent': 'curl/8' } }

  test('a mapping that accepts nothing for longer than expectEvery is reported, and so is the next request', async () => {
    const stage = createSenderStage({ mappings })
    for (let count = 0; count < 5; count += 1) {
      stage.accept(backup, 'backup')
      await stage.pass(59 * minute)
    }
    await stage.pass(minute)
    expect(stage.told).toEqual([])
    await stage.pass(2 * minute)
    expect(stage.texts()).toEqual([
      expect.stringContaining('nothing has come from the mapping "backup" since 03:56 UTC, expected every 60 min'),
    ])
    stage.accept(backup, 'backup')
    await stage.pass(minute)
    expect(stage.texts()[1]).toContain('the mapping "backup" sends again')
  })

  test('a mapping that accepts nothing is reported although the clock of the gateway was years ahead at its last request', async () => {
    const stage = createSenderStage({ mappings })
    await stage.look()
    stage.setTime(monday + 3_650 * day)
    stage.accept(backup, 'backup')
    await stage.look()
    stage.setTime(monday + minute)
    // for an hour, the clock may be wrong as well as the record
    await stage.pass(2 * hour)
    expect(stage.told).toEqual([])
    await stage.pass(2 * minute)
    expect(stage.texts()).toEqual([expect.stringContaining('expected every 60 min')])
  })

  test('a mapping whose first request never comes is reported', async () => {
    const stage = createSenderStage({ mappings })
    await stage.pass(hour)
    expect(stage.told).toEqual([])
    await stage.pass(5 * minute)
    expect(stage.texts()).toEqual([expect.stringContaining('nothing has come yet from the mapping "backup"')])
  })

  test('a mapping with expectEvery 0 is never reported', async () => {
    const stage = createSenderStage({ mappings: [{ ...mappings[0], expectEvery: 0 }] })
    stage.accept(backup, 'backup')
    await stage.pass(6 * hour)
    expect(stage.told).toEqual([])
  })
})
