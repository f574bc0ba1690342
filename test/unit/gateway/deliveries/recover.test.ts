// One pass over the outbox of a sender, against the fakes: pages, limits, ids that are gone, failures, and two gateways.
import { describe, expect, test } from 'vitest'
import { createIntake } from '../../../../src/gateway/deliveries/intake.ts'
import { recoverSource } from '../../../../src/gateway/deliveries/recovery/pass.ts'
import { outboxes } from '../../../../src/plugins/outboxes/index.ts'
import { createRecovery } from '../../../../src/gateway/deliveries/recovery/recovery.ts'
import { scanOutbox } from '../../../../src/gateway/deliveries/recovery/scan.ts'
import { createAlerts } from '../../../../src/gateway/jobs/alerts.ts'
import type { Outbox, SentAttempt } from '../../../../src/model/outbox.ts'
import { ConfigSchema } from '../../../../src/gateway/config/keys.ts'
import { Mapping, type MappingInput } from '../../../../src/core/model/mapping.ts'
import { silentLog } from '../../../../src/base/log.ts'
import { Problem } from '../../../../src/core/model/problem.ts'
import { createGeneration } from '../../../../src/gateway/generation/generation.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import type { Store } from '../../../../src/store/store.ts'
import { toGeneration, toTestId } from '../../core/mapping/decide.ts'
import { createClock, type Moved } from '../../../contract/stage.ts'
import { basecampToken, startBasecamp } from '../../../e2e/fakes/basecamp-webhook.ts'
import { githubApp, githubToken, startGitHub } from '../../../e2e/fakes/github-deliveries.ts'
import { gitlabToken, startGitLab } from '../../../e2e/fakes/gitlab-events.ts'
import { shopifyToken, startShopify } from '../../../e2e/fakes/shopify-subscriptions.ts'
import { startStripe, stripeKey } from '../../../e2e/fakes/stripe-events.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

const minute = 60_000

type StageOptions = { store?: Store; clock?: Moved; canAlert?: () => boolean; isOnDuty?: () => boolean }

function createStage(
  recover: NonNullable<MappingInput['recover']>,
  { store: given, clock = createClock(), canAlert = () => true, isOnDuty = () => false }: StageOptions = {},
) {
  const store = given ?? createMemoryStore({ clock })
  const secret = 'a-secret-of-sixteen-bytes'
  const mapping = Mapping.parse({ match: { path: 'in' }, verify: { scheme: 'github', secret }, recover })
  const config = ConfigSchema.parse({ hooks: { enabled: true, token: 'hook-secret-0123456789abcdefghij' } })
  const mappings = [{ ...mapping, id: 'one' }]
  const generation = createGeneration({ senders: builtInSenders, config, mappings, transforms: new Map() })
  const lines: string[] = []
  const add = (_fields: object, text: string) => void lines.push(text)
  /** The messages that were queued: at most one an hour for each cause. */
  const told: string[] = []
  const waits: number[] = []
  const log = { debug() {}, info: add, warn: add, error: add }
  const alerts = createAlerts({
    store: {
      taskAgeMs: (standsFor) => store.taskAgeMs(standsFor),
      async addTask(task) {
        if (!canAlert()) throw new Problem('store-unavailable', 'The disk is full.')
        const isAdded = await store.addTask(task)
        if (isAdded && task.planned.kind === 'alert') told.push(task.planned.text)
        return isAdded
      },
    },
    config: () => config,
    clock,
    newId: toTestId,
    onAdded() {},
    meter() {},
    log,
  })
  const recovery = createRecovery({
    generation: () => generation,
    outboxes: () => outboxes,
    store,
    rerunner: { claim: async () => {}, release: async () => {}, rerun: async () => 'accepted' },
    duty: { isHeld: isOnDuty },
    tickMs: 5,
    alert: alerts.reportRecovery,
    clock,
    newId: toTestId,
    pause: async (ms) => {
      waits.push(ms)
      clock.advance(ms)
    },
    log,
  })
  const countStored = async () => (await store.deliveries({ limit: 500 })).length
  return { clock, store, recovery, lines, told, waits, countStored }
}

const toGitHub = (baseUrl: string) =>
  ({ sender: 'github', repository: 'acme/app', hookId: 77, token: githubToken, baseUrl }) as const

/** A stage on a fake GitHub, whose first pass is done. */
async function startOnGitHub(options: StageOptions = {}) {
  let now = () => 0
  const github = await startGitHub({ clock: () => now(), pageSize: 3 })
  const stage = createStage(toGitHub(github.url), options)
  now = stage.clock
  expect(await stage.recovery.run({})).toMatchObject([{ begins: true, problem: undefined }])
  stage.clock.advance(20 * minute)
  return { ...stage, github }
}

/** An outbox and its passes. A delivery whose id begins with `broken` is never returned, and one with `late` only after `mend`. The first pass is done. */
async function openPartlyBroken() {
  const clock = createClock()
  const store = createMemoryStore({ clock })
  const generation = toGeneration([{ match: { path: 'in' }, messageTemplate: 'x' }])
  const [mapping] = generation.mappings
  if (mapping === undefined) throw new Error('there is one mapping')
  const rerunner = { claim: async () => {}, release: async () => {}, rerun: async () => 'accepted' }
  const intake = createIntake({ store, rerunner, log: silentLog })
  const parts = { generation: () => generation, store, intake, clock, newId: toTestId, log: silentLog }
  const attempts: SentAttempt[] = []
  let isLate = true
  const fail = (id: string) => {
    clock.advance(1)
    attempts.unshift({ id, ref: id, place: clock(), isDelivered: false })
  }
  const outbox: Outbox = {
    name: 'an outbox',
    remembers: true,
    hasTimes: true,
    overlap: 10 * minute,
    async *pages() {
      yield { attempts, now: clock() }
    },
    async fetch({ id }) {
      if (id.startsWith('broken') || (id.startsWith('late') && isLate))
        throw new Problem('recover-unavailable', 'The answer was 500.')
      return { headers: { 'content-type': 'application/json' }, body: new TextEncoder().encode('{}') }
    },
    state: async () => ({ isOn: true }),
    turnOn: async () => {},
  }
  const pass = async (options: { since?: number } = {}) => {
    clock.advance(20 * minute)
    return recoverSource({ sender: 'acme', path: 'in', mapping, outbox }, parts, options)
  }
  expect(await pass()).toMatchObject({ begins: true })
  return { fail, pass, mend: () => void (isLate = false) }
}

describe('a pass over the deliveries of a sender', () => {
  test('a delivery that failed before the first pass is recovered only with --since, and a dry run changes nothing', async () => {
    let now = () => 0
    const github = await startGitHub({ clock: () => now() })
    const { clock, recovery, countStored } = createStage(toGitHub(github.url))
    now = clock
    github.addAttempt()
    clock.advance(60 * minute)
    await recovery.run({})
    expect(await recovery.run({})).toMatchObject([{ missing: 0 }])
    const since = clock() - 120 * minute
    expect(await recovery.run({ since, isDryRun: true })).toMatchObject([{ missing: 1, recovered: 0 }])
    expect(await countStored()).toBe(0)
    expect(await recovery.run({ since })).toMatchObject([{ missing: 1, recovered: 1 }])
    expect(await recovery.run({ since })).toMatchObject([{ missing: 0, recovered: 0 }])
    expect(await countStored()).toBe(1)
  })

  test('a delivery whose request does not show its id is recovered once, however often --since takes it', async () => {
    const { fail, pass } = await openPartlyBroken()
    fail('one')
    fail('two')
    expect(await pass()).toMatchObject({ missing: 2, recovered: 2 })
    expect(await pass({ since: 0 })).toMatchObject({ missing: 0, recovered: 0 })
  })

  test('if --since is later than the last pass, the deliveries between these two moments are left to the next pass', async () => {
    const { recovery, github, clock, countStored } = await startOnGitHub()
    github.addAttempt()
    clock.advance(60 * minute)
    github.addAttempt()
    clock.advance(5 * minute)
    expect(await recovery.run({ since: clock() - 10 * minute })).toMatchObject([{ missing: 1, recovered: 1 }])
    expect(await recovery.run({})).toMatchObject([{ missing: 1, recovered: 1 }])
    expect(await recovery.run({})).toMatchObject([{ missing: 0 }])
    expect(await countStored()).toBe(2)
  })

  test('--since takes all that GitLab remembers, because its events have no times', async () => {
    let now = () => 0
    const gitlab = await startGitLab({ clock: () => now() })
    const settings = { project: 'acme/app', hookId: 5, token: gitlabToken, baseUrl: `${gitlab.url}/api/v4` }
    const { clock, recovery, countStored } = createStage({ sender: 'gitlab', ...settings })
    now = clock
    gitlab.addAttempt({ payload: { n: 1 } })
    clock.advance(60 * minute)
    await recovery.run({})
    expect(await countStored()).toBe(0)
    expect(await recovery.run({ since: clock() - minute })).toMatchObject([{ missing: 1, recovered: 1 }])
    expect(await countStored()).toBe(1)
  })

  test('events of GitLab on several pages that failed before the first pass are not recovered, and later ones are', async () => {
    let now = () => 0
    const gitlab = await startGitLab({ clock: () => now() })
    const settings = { project: 'acme/app', hookId: 5, token: gitlabToken, baseUrl: `${gitlab.url}/api/v4` }
    const { clock, recovery, countStored } = createStage({ sender: 'gitlab', ...settings })
    now = clock
    for (let n = 0; n < 50; n += 1) gitlab.addAttempt({ payload: { n } })
    expect(await recovery.run({})).toMatchObject([{ begins: true, problem: undefined }])
    expect(await recovery.run({})).toMatchObject([{ missing: 0, problem: undefined }])
    for (let n = 50; n < 95; n += 1) gitlab.addAttempt({ payload: { n } })
    expect(await recovery.run({})).toMatchObject([{ missing: 45, recovered: 45 }])
    expect(await countStored()).toBe(45)
  })

  test('an event whose request GitLab did not keep, because it was too large, is reported as lost', async () => {
    let now = () => 0
    const gitlab = await startGitLab({ clock: () => now() })
    const settings = { project: 'acme/app', hookId: 5, token: gitlabToken, baseUrl: `${gitlab.url}/api/v4` }
    const { clock, recovery, lines, countStored } = createStage({ sender: 'gitlab', ...settings })
    now = clock
    await recovery.run({})
    const lost = gitlab.addAttempt({ payload: { oversize: true } })
    gitlab.addAttempt({ payload: { oversize: true, object_kind: 'push' } })
    expect(await recovery.run({})).toMatchObject([{ missing: 2, recovered: 1, gone: 1 }])
    expect(lines).toContainEqual(expect.stringContaining(`no longer has the delivery ${lost}, so it is lost`))
    expect(await countStored()).toBe(1)
    expect(await recovery.run({})).toMatchObject([{ missing: 0 }])
  })

  test('deliveries that the sender never returns are reported, and hold up no later delivery', async () => {
    const { fail, pass } = await openPartlyBroken()
    for (const id of ['broken-1', 'whole-1', 'broken-2', 'whole-2', 'broken-3']) fail(id)
    expect(await pass()).toMatchObject({ recovered: 2, failed: 3, problem: undefined })
    fail('whole-3')
    expect(await pass()).toMatchObject({ recovered: 1, problem: 'The answer was 500.' })
    expect(await pass()).toMatchObject({ recovered: 0, problem: 'The answer was 500.' })
  })

  test('three deliveries in a row that the sender never returns end one pass, and the next pass fetches those after them', async () => {
    const { fail, pass } = await openPartlyBroken()
    for (const id of ['whole-1', 'broken-1', 'broken-2', 'broken-3', 'whole-2']) fail(id)
    expect(await pass()).toMatchObject({ recovered: 1, failed: 3, problem: 'The answer was 500.' })
    expect(await pass()).toMatchObject({ recovered: 1, problem: 'The answer was 500.' })
    expect(await pass()).toMatchObject({ recovered: 0, problem: 'The answer was 500.' })
  })

  test('a delivery that could not be fetched is tried again, although three others before it are never returned', async () => {
    const { fail, pass, mend } = await openPartlyBroken()
    for (const id of ['broken-1', 'whole-1', 'broken-2', 'whole-2', 'broken-3', 'whole-3', 'late-1', 'whole-4'])
      fail(id)
    expect(await pass()).toMatchObject({ recovered: 4, failed: 4, problem: undefined })
    mend()
    expect(await pass()).toMatchObject({ recovered: 0, problem: 'The answer was 500.' })
    expect(await pass()).toMatchObject({ recovered: 1, problem: 'The answer was 500.' })
  })

  test('what failed in the minute before a start is recovered a minute after it: until then, its attempts may still run', async () => {
    const clock = createClock()
    const github = await startGitHub({ clock })
    let isHeld = false
    const { recovery, lines } = createStage(toGitHub(github.url), { clock, isOnDuty: () => isHeld })
    const setDuty = (held: boolean) => {
      isHeld = held
      recovery.apply()
    }
    setDuty(true)
    await expect.poll(() => lines.at(-1)).toMatch(/recover begins now/)
    setDuty(false)
    clock.advance(20 * minute)
    github.addAttempt()
    clock.advance(minute / 2)
    setDuty(true)
    await expect.poll(() => lines.at(-1)).toMatch(/^not listening .*; github: 0 of 0 recovered$/)
    clock.advance(minute)
    await expect.poll(() => lines.at(-1)).toBe('github: 1 of 1 recovered')
    await recovery.stop()
  })

  test('a delivery that succeeded at a second attempt is not fetched, and one that fails twice is fetched once', async () => {
    const { recovery, github, clock, countStored } = await startOnGitHub()
    const [good, bad] = [github.addAttempt(), github.addAttempt()]
    clock.advance(minute)
    github.addAttempt({ guid: good, status: 200, redelivery: true })
    github.addAttempt({ guid: bad, redelivery: true })
    clock.advance(5 * minute)
    expect(await recovery.run({})).toMatchObject([{ missing: 1, recovered: 1 }])
    expect(await countStored()).toBe(1)
  })

  test('a delivery that GitHub no longer has is an error with its id, and the others are recovered', async () => {
    const { recovery, github, clock, lines } = await startOnGitHub()
    const [gone] = [github.addAttempt(), github.addAttempt(), github.addAttempt()]
    github.forget(gone ?? '')
    clock.advance(5 * minute)
    expect(await recovery.run({})).toMatchObject([{ missing: 3, recovered: 2, gone: 1 }])
    expect(lines.join('\n')).toContain(`github no longer has the delivery ${gone}, so it is lost.`)
  })

  test('a recovery request that fails is tried again in the next pass, and holds up no other delivery', async () => {
    const { recovery, github, clock, countStored } = await startOnGitHub()
    for (let index = 0; index < 5; index += 1) github.addAttempt()
    clock.advance(5 * minute)
    let mustFail = true
    // the second delivery gets 500 in each of its four tries
    github.onRequest('/deliveries/', () => {
      if (mustFail) github.planAnswers(...[1, 2, 3, 4].map(() => ({ status: 500 })))
      mustFail = false
    })
    expect(await recovery.run({})).toMatchObject([{ missing: 5, recovered: 4, failed: 1 }])
    expect(await recovery.run({})).toMatchObject([{ missing: 1, recovered: 1, failed: 0 }])
    expect(await recovery.run({})).toMatchObject([{ missing: 0 }])
    expect(await countStored()).toBe(5)
  })

  test('recovery waits for the end of a rate limit by the clock of the sender, and sends no request before it', async () => {
    const { recovery, github, clock, waits, countStored } = await startOnGitHub()
    for (let index = 0; index < 6; index += 1) github.addAttempt()
    clock.advance(5 * minute)
    github.limitRequests(5, 1_800)
    expect(await recovery.run({})).toMatchObject([{ missing: 6, recovered: 6, problem: undefined }])
    expect(Math.max(...waits)).toBeGreaterThanOrEqual(1_790_000)
    expect(github.faults).toEqual([])
    expect(await countStored()).toBe(6)
  })

  test('recovery follows no redirect, so that no other host gets the credential', async () => {
    const { recovery, github, clock } = await startOnGitHub()
    const other = await startGitHub({ clock })
    github.planAnswers({ status: 302, headers: { location: `${other.url}/repos/acme/app/hooks/77` } })
    expect(await recovery.run({})).toMatchObject([
      { problem: expect.stringContaining('It redirects to another address.') },
    ])
    expect(other.received).toEqual([])
  })

  test('two gateways at the same time take each delivery once', async () => {
    const first = await startOnGitHub()
    const second = createStage(toGitHub(first.github.url), { store: first.store })
    second.clock.advance(20 * minute)
    for (let index = 0; index < 30; index += 1) first.github.addAttempt()
    first.clock.advance(5 * minute)
    for (let left = 3; left > 0; left -= 1) await Promise.all([first.recovery.run({}), second.recovery.run({})])
    expect(await first.countStored()).toBe(30)
  })

  test('a webhook that GitLab disabled is reported once, and turned on only if the configuration allows it', async () => {
    for (const turnOn of [false, true]) {
      let now = () => 0
      const gitlab = await startGitLab({ clock: () => now() })
      const settings = { project: 'acme/app', hookId: 5, token: gitlabToken, baseUrl: `${gitlab.url}/api/v4`, turnOn }
      const { clock, recovery, told } = createStage({ sender: 'gitlab', ...settings })
      now = clock
      Object.assign(gitlab.hook, { alertStatus: 'disabled', disabledUntil: '2026-11-24T00:00:00Z' })
      await recovery.run({})
      await recovery.run({})
      expect(told).toEqual([expect.stringContaining('GitLab has disabled the webhook until 2026-11-24T00:00:00Z')])
      expect(gitlab.hook.alertStatus).toBe(turnOn ? 'executable' : 'disabled')
    }
  })

  test('a webhook that GitLab disabled is reported by a later pass if the alert or the note of it could not be stored', async () => {
    const gitlab = await startGitLab({ clock: () => 0 })
    const settings = { project: 'acme/app', hookId: 5, token: gitlabToken, baseUrl: `${gitlab.url}/api/v4` }
    const memory = createMemoryStore({ clock: createClock() })
    let troubles: string[] = ['alert', 'store']
    const store = new Proxy(memory, {
      get: (target, name) => (name === 'appendAll' ? appendAll : Reflect.get(target, name)),
    })
    const { recovery, told } = createStage(
      { sender: 'gitlab', ...settings },
      { store, canAlert: () => !troubles.includes('alert') },
    )
    Object.assign(gitlab.hook, { alertStatus: 'disabled' })
    await recovery.run({})
    troubles = ['alert']
    await recovery.run({})
    expect(told).toEqual([])
    troubles = ['store']
    await recovery.run({})
    troubles = []
    await recovery.run({})
    await recovery.run({})
    expect(told).toHaveLength(1)

    async function appendAll(...given: Parameters<Store['appendAll']>) {
      if (troubles.includes('store')) throw new Problem('store-unavailable', 'The disk is full.')
      return memory.appendAll(...given)
    }
  })

  test('a webhook that GitLab disables for some hours, again for some hours, and then for good within an hour is reported twice', async () => {
    const gitlab = await startGitLab({ clock: () => 0 })
    const settings = { project: 'acme/app', hookId: 5, token: gitlabToken, baseUrl: `${gitlab.url}/api/v4` }
    const { recovery, told } = createStage({ sender: 'gitlab', ...settings })
    Object.assign(gitlab.hook, { alertStatus: 'temporarily_disabled', disabledUntil: '2026-11-24T00:00:00Z' })
    await recovery.run({})
    Object.assign(gitlab.hook, { disabledUntil: '2026-11-25T00:00:00Z' })
    await recovery.run({})
    Object.assign(gitlab.hook, { alertStatus: 'disabled', disabledUntil: null })
    await recovery.run({})
    expect(told).toEqual([expect.stringContaining('until 2026-11-24T00'), expect.stringContaining('(disabled)')])
  })

  test('a webhook that is switched off, on, and off again for the same reason within an hour is reported twice', async () => {
    const { recovery, github, told } = await startOnGitHub()
    for (const active of [false, false, true, false, false]) {
      github.hook.active = active
      await recovery.run({})
    }
    expect(told).toHaveLength(2)
  })

  test('a webhook that an earlier version reported as switched off is not reported again', async () => {
    const { recovery, github, store, told } = await startOnGitHub()
    github.hook.active = false
    const name = `recover in github ${github.url}/repos/acme/app/hooks/77 state`
    await store.appendAll([], { name, from: undefined, to: 'The webhook is not active at GitHub.' })
    await recovery.run({})
    expect(told).toEqual([])
    github.hook.active = true
    await recovery.run({})
    github.hook.active = false
    await recovery.run({})
    expect(told).toHaveLength(1)
  })

  test('two webhooks of a sender with the same hook that are switched off are both reported', async () => {
    let now = () => 0
    const github = await startGitHub({ clock: () => now() })
    const first = createStage(toGitHub(github.url))
    now = first.clock
    // the same webhook behind another address is another one
    const second = createStage(toGitHub(github.url.replace('127.0.0.1', 'localhost')), { store: first.store })
    github.hook.active = false
    await first.recovery.run({})
    await second.recovery.run({})
    expect([first.told.length, second.told.length]).toEqual([1, 1])
  })

  test('a webhook that GitLab calls again is not reported, although the time of its last suspension is still shown', async () => {
    let now = () => 0
    const gitlab = await startGitLab({ clock: () => now() })
    const settings = { project: 'acme/app', hookId: 5, token: gitlabToken, baseUrl: `${gitlab.url}/api/v4` }
    const { clock, recovery, told } = createStage({ sender: 'gitlab', ...settings, turnOn: true })
    now = clock
    const disabledUntil = new Date(clock() - minute).toISOString()
    Object.assign(gitlab.hook, { alertStatus: 'executable', disabledUntil })
    await recovery.run({})
    expect(told).toEqual([])
    expect(gitlab.hook.disabledUntil).toBe(disabledUntil)
  })

  test('the last 25 deliveries of Basecamp are recovered, each event once', async () => {
    let now = () => 0
    const basecamp = await startBasecamp({ clock: () => now() })
    const settings = {
      account: 195_539_477,
      hookId: 3,
      token: basecampToken,
      contact: 'ops@example.org',
      baseUrl: basecamp.url,
    }
    const { clock, recovery, countStored } = createStage({ sender: 'basecamp', ...settings })
    now = clock
    await recovery.run({})
    clock.advance(20 * minute)
    for (let event = 1; event <= 10; event += 1) for (const code of [undefined, 503]) basecamp.addAttempt(event, code)
    basecamp.addAttempt(3, 200)
    clock.advance(5 * minute)
    expect(await recovery.run({})).toMatchObject([{ missing: 9, recovered: 9 }])
    expect(await recovery.run({})).toMatchObject([{ missing: 0 }])
    expect([await countStored(), basecamp.faults]).toEqual([9, []])
  })
})

type Recover = NonNullable<MappingInput['recover']>

const app = {
  appId: githubApp.id,
  privateKey: githubApp.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
}
const basecampHook = { account: 195_539_477, hookId: 3, token: basecampToken, contact: 'ops@example.org' }

type Opened = {
  fake: { url: string; faults: string[]; limitRequests(requests: number, seconds: number): void }
  recover: Recover
  fails: (n: number) => void
}

/** Each kind of webhook, with a fake on this clock: `fails` adds a delivery that failed. */
const kinds: readonly (readonly [string, (clock: () => number) => Promise<Opened>])[] = [
  ...(['repository', 'organization', 'app'] as const).map(
    (place) =>
      [
        `the webhook of a GitHub ${place}`,
        async (clock: () => number) => {
          const fake = await startGitHub({ clock, place, pageSize: 3 })
          const owner = { repository: { repository: 'acme/app' }, organization: { organization: 'acme' }, app }[place]
          const own = place === 'app' ? {} : { hookId: 77, token: githubToken }
          const recover: Recover = { sender: 'github', ...owner, ...own, baseUrl: fake.url }
          return { fake, recover, fails: (n: number) => void fake.addAttempt({ payload: { n } }) }
        },
      ] as const,
  ),
  ...(['project', 'group'] as const).map(
    (place) =>
      [
        `the webhook of a GitLab ${place}`,
        async (clock: () => number) => {
          const fake = await startGitLab({ clock, place })
          const owner = place === 'project' ? { project: 'acme/app' } : { group: 'acme/tools' }
          const baseUrl = `${fake.url}/api/v4`
          const recover: Recover = { sender: 'gitlab', ...owner, hookId: 5, token: gitlabToken, baseUrl }
          return { fake, recover, fails: (n: number) => void fake.addAttempt({ payload: { n } }) }
        },
      ] as const,
  ),
  [
    'a webhook endpoint of Stripe',
    async (clock) => {
      const fake = await startStripe({ clock })
      const recover: Recover = { sender: 'stripe', hookId: 'we_1', token: stripeKey, baseUrl: fake.url }
      return { fake, recover, fails: (n) => void fake.addEvent({ object: { n } }) }
    },
  ],
  [
    'a webhook of Basecamp',
    async (clock) => {
      const fake = await startBasecamp({ clock })
      const recover: Recover = { sender: 'basecamp', ...basecampHook, baseUrl: fake.url }
      return { fake, recover, fails: (n) => fake.addAttempt(n) }
    },
  ],
]

describe.each(kinds)('recovery from %s', (_, open) => {
  test.each([
    ['agree', 0],
    ['differ: the sender is two hours ahead', 2 * 60 * minute],
    ['differ: the sender is two hours behind', -2 * 60 * minute],
  ])('every delivery is recovered once, despite a rate limit, if the clocks %s', async (_name, aheadMs) => {
    let now = () => 0
    const { fake, recover, fails } = await open(() => now() + aheadMs)
    const { clock, recovery, countStored } = createStage(recover)
    now = clock
    clock.advance(24 * 60 * minute)
    expect(await recovery.run({})).toMatchObject([{ begins: true, problem: undefined }])
    clock.advance(20 * minute)
    for (let n = 1; n <= 7; n += 1) fails(n)
    clock.advance(5 * minute)
    // the limit allows the next request and one more
    fake.limitRequests(2, 60)
    expect(await recovery.run({})).toMatchObject([{ missing: 7, recovered: 7, problem: undefined }])
    expect(await recovery.run({})).toMatchObject([{ missing: 0 }])
    expect([await countStored(), fake.faults]).toEqual([7, []])
  })
})

describe('the subscriptions of Shopify', () => {
  const url = 'https://hooks.example/hooks/in'
  const topics = ['orders/create', 'orders/updated', 'app/uninstalled']

  async function startOnShopify(turnOn: boolean) {
    let now = () => 0
    const shopify = await startShopify({ clock: () => now() })
    const section = { shop: 'acme.myshopify.com', topics, url, token: shopifyToken, baseUrl: shopify.url, turnOn }
    const stage = createStage({ sender: 'shopify', ...section })
    now = stage.clock
    const add = (topic: string, uri = url) => void shopify.subscriptions.push({ topic, uri })
    for (const topic of ['ORDERS_CREATE', 'ORDERS_UPDATED', 'APP_UNINSTALLED']) add(topic)
    add('ORDERS_CREATE', 'https://elsewhere.example/')
    return { ...stage, shopify }
  }

  test('a removed subscription is reported once, and created again only if turnOn is set', async () => {
    for (const turnOn of [false, true]) {
      const { recovery, shopify, told, lines } = await startOnShopify(turnOn)
      expect(await recovery.run({})).toMatchObject([{ sender: 'shopify', problem: undefined, begins: false }])
      expect([told, lines]).toEqual([[], []])
      // Shopify removed two subscriptions, and the one with another URL stays
      shopify.subscriptions.splice(0, 2)
      await recovery.run({})
      await recovery.run({})
      expect(told).toEqual([expect.stringMatching(/no subscription of orders\/create, orders\/updated for the URL/)])
      const made = shopify.subscriptions.filter(({ uri }) => uri === url).map(({ topic }) => topic)
      const again = turnOn ? ['ORDERS_CREATE', 'ORDERS_UPDATED'] : []
      expect(made).toEqual(['APP_UNINSTALLED', ...again])
      expect(lines.filter((line) => line.includes('calls the hook "in" again'))).toHaveLength(turnOn ? 1 : 0)
      expect(shopify.faults).toEqual([])
    }
  })

  test('a subscription whose URL ends with a slash is not reported as removed, and not created again', async () => {
    const { recovery, shopify, told } = await startOnShopify(true)
    for (const each of shopify.subscriptions) each.uri = `${each.uri}/`
    const before = shopify.subscriptions.length
    await recovery.run({})
    expect([told, shopify.subscriptions.length]).toEqual([[], before])
  })

  test('a throttled answer is a problem of the current pass, and reports no subscription as removed', async () => {
    const { recovery, shopify, told } = await startOnShopify(true)
    shopify.throttle()
    expect(await recovery.run({})).toMatchObject([{ problem: 'Shopify answers THROTTLED. It is asked again.' }])
    expect(told).toEqual([])
    expect(await recovery.run({})).toMatchObject([{ problem: undefined }])
  })
})

test('a scan of an outbox with endless pages ends with an error that names the outbox', async () => {
  let asked = 0
  const attempt = { id: 'a', headers: {}, place: 5, isDelivered: false, ref: 'a' }
  async function* pages() {
    for (; asked < 100_000; asked += 1) yield { attempts: [attempt], now: undefined }
  }
  const outbox = { name: 'github acme', remembers: true, hasTimes: true, overlap: 0, pages } as unknown as Outbox // as: a scan reads only this
  await expect(scanOutbox(outbox, 0)).rejects.toThrow(/github acme: its last 100 pages .* do not end/)
  expect(asked).toBeLessThan(200)
})

test('a failure to turn on a webhook is logged, and its deliveries are still recovered', async () => {
  let now = () => 0
  const github = await startGitHub({ clock: () => now() })
  const { clock, recovery, lines, countStored } = createStage({ ...toGitHub(github.url), turnOn: true })
  now = clock
  await recovery.run({})
  github.hook.active = false
  clock.advance(20 * minute)
  github.addAttempt()
  clock.advance(5 * minute)
  // the token may not turn the webhook on
  github.onRequest('/hooks/77?', () =>
    github.planAnswers({ status: 403, body: { message: 'Resource not accessible' } }),
  )
  expect(await recovery.run({})).toMatchObject([{ missing: 1, recovered: 1, problem: undefined }])
  expect(lines.join('\n')).toMatch(/could not be turned on: .* answers 403/)
  expect(await countStored()).toBe(1)
})

describe('the messages about a recovery that fails', () => {
  const refuse = (status: number) => [1, 2].map(() => ({ status }))
  /** A pass asks four times. */
  const down = [1, 2, 3, 4].map(() => ({ status: 503 }))

  test('a token that has expired is reported once, at once and with the next move, and so is the first pass that works again', async () => {
    const { recovery, github, clock, told } = await startOnGitHub()
    for (let passes = 3; passes > 0; passes -= 1) {
      github.planAnswers(...refuse(401))
      await recovery.run({})
      clock.advance(50 * minute)
    }
    expect(told).toEqual([
      expect.stringMatching(
        /^Hookloom: recovery from github for the hook "in" fails: \S+ answers 401\. .* put it into \.env/,
      ),
    ])
    await recovery.run({})
    await recovery.run({})
    expect(told.slice(1)).toEqual([
      expect.stringMatching(/^Hookloom: recovery from github for the hook "in" works again\. It failed for 3 h\.$/),
    ])
  })

  test('another reason for which the API refuses the gateway is reported too, and a dry run reports nothing', async () => {
    const { recovery, github, told } = await startOnGitHub()
    github.planAnswers(...refuse(401))
    await recovery.run({ isDryRun: true })
    expect(told).toEqual([])
    for (const status of [401, 404, 404]) {
      github.planAnswers(...refuse(status))
      await recovery.run({})
    }
    expect(told).toEqual([expect.stringContaining('answers 401'), expect.stringContaining('answers 404')])
  })

  test('an API that is down is reported once after three hours, and not for a shorter time', async () => {
    const { recovery, github, clock, told } = await startOnGitHub()
    const failFor = async (hours: number) => {
      for (let passes = hours * 4; passes > 0; passes -= 1) {
        github.planAnswers(...down)
        await recovery.run({})
        clock.advance(15 * minute)
      }
    }
    await failFor(2)
    await recovery.run({})
    await failFor(3)
    expect(told).toEqual([])
    await failFor(3)
    expect(told).toEqual([
      expect.stringMatching(/^Hookloom: recovery from github for the hook "in" has failed for 3 h: \S+ answers 503\./),
    ])
  })

  test('an API that was down before the machine slept and after it is not reported, because nobody asked it in between', async () => {
    const { recovery, github, clock, told } = await startOnGitHub()
    github.planAnswers(...down)
    await recovery.run({})
    clock.advance(8 * 60 * minute)
    github.planAnswers(...down)
    await recovery.run({})
    expect(told).toEqual([])
  })

  test('deliveries that the sender no longer has and that the hook refuses are reported, at most once an hour, and none is left out', async () => {
    let canAlert = true
    const { recovery, github, clock, told } = await startOnGitHub({ canAlert: () => canAlert })
    const lose = async () => {
      github.forget(github.addAttempt())
      clock.advance(5 * minute)
      await recovery.run({})
    }
    github.addAttempt({ payload: { text: 'x'.repeat(2_000_000) } })
    await lose()
    expect(told).toEqual([
      'Hookloom: of the deliveries of github for the hook "in" that did not arrive, 1 is lost, because github no longer has it, and the hook ' +
        'refuses 1. The log has each id and reason. "hookloom recover github --since 1d" tries the refused ones again, after a change of the mapping.',
    ])
    await lose()
    await lose()
    expect(told).toHaveLength(1)
    clock.advance(60 * minute)
    canAlert = false
    await lose()
    canAlert = true
    await recovery.run({})
    expect(told.slice(1)).toEqual([
      'Hookloom: of the deliveries of github for the hook "in" that did not arrive, 3 are lost, because github no longer has them. The log has ' +
        'each id and reason.',
    ])
    clock.advance(2 * 60 * minute)
    await recovery.run({})
    expect(told).toHaveLength(2)
  })

  test('a webhook that cannot be turned on is reported with the reason', async () => {
    const { clock, store, github } = await startOnGitHub()
    const { recovery, told } = createStage({ ...toGitHub(github.url), turnOn: true }, { store, clock })
    github.hook.active = false
    const refused = { status: 403, body: { message: 'Resource not accessible' } }
    github.onRequest('/hooks/77?', () => github.planAnswers(refused))
    await recovery.run({})
    clock.advance(minute)
    await recovery.run({})
    expect(told).toEqual([
      expect.stringContaining('does not call the hook "in" any more'),
      expect.stringMatching(/fails: The webhook could not be turned on: \S+ answers 403/),
    ])
  })
})
