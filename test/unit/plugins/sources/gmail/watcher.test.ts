// The watcher with a fake Google on loopback. The test ends each wait, and never sleeps.
import assert from 'node:assert'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { writeConsent } from '../../../../../src/plugins/sources/gmail/credentials.ts'
import type { GmailPayload, GmailState, MailSink } from '../../../../../src/plugins/sources/gmail/mail.ts'
import type { Sleep } from '../../../../../src/base/retry.ts'
import { isRenewalDue } from '../../../../../src/plugins/sources/gmail/renewal.ts'
import { readStatus } from '../../../../../src/plugins/sources/gmail/status.ts'
import { toStatusFile } from '../../../../../src/plugins/sources/gmail/status.ts'
import { type MailWatcher, startWatcher } from '../../../../../src/plugins/sources/gmail/watcher.ts'
import { type Log, silentLog } from '../../../../../src/base/log.ts'
import { account, type FakeGoogle, pushServiceAccount, startGoogle } from '../../../../e2e/fakes/google.ts'
import { consent, createMemorySink, toGmail, toVerifier } from './stage.ts'

let google: FakeGoogle
let dir: string
let watcher: MailWatcher | undefined
let pauses: { ms: number; end: () => void }[]
let lookers: (() => void)[]
/** Milliseconds by which the watcher's clock is ahead. */
let later: number
const project = 'proj-123456'

beforeEach(async () => {
  google = await startGoogle({ clock: () => Date.now() + later })
  dir = mkdtempSync(join(tmpdir(), 'hookloom-gmail-'))
  pauses = []
  lookers = []
  later = 0
  await writeConsent(dir, consent)
})
afterEach(async () => {
  await watcher?.stop()
  watcher = undefined
  rmSync(dir, { recursive: true, force: true })
  assert.deepEqual(google.faults, [])
})

/** A wait that ends with the signal, or by `endWaits`. */
const pause: Sleep = (ms, signal) =>
  new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    if (signal.aborted) reject(signal.reason)
    pauses.push({ ms, end: resolve })
    for (const look of lookers) look()
  })

/** Resolves when this number of waits of this length are in progress. */
const waitForPauses = (ms: number, count = 1) =>
  new Promise<void>((resolve) => {
    const look = () => {
      if (pauses.filter((one) => one.ms === ms).length >= count) resolve()
    }
    lookers.push(look)
    look()
  })

/** Waits until a wait of this length has begun, and ends all of them. */
async function endWaits(ms: number): Promise<void> {
  await waitForPauses(ms)
  for (const one of pauses.filter((each) => each.ms === ms)) one.end()
  pauses = pauses.filter((each) => each.ms !== ms)
}

/** A sink, and functions that wait until it has a position or a number of mails. */
function createSinkObserver() {
  const sink = createMemorySink()
  const waiting: { holds: () => boolean; resolve: () => void }[] = []
  const look = () => {
    for (const one of waiting) if (one.holds()) one.resolve()
  }
  const observed: MailSink = {
    state: sink.state,
    async deliver(payloads: readonly GmailPayload[], state: GmailState) {
      await sink.deliver(payloads, state)
      look()
    },
  }
  const listIds = () => sink.delivered.map(({ messages: [{ id }] }) => id)
  const waitUntil = (holds: () => boolean) =>
    new Promise<void>((resolve) => {
      waiting.push({ holds, resolve })
      look()
    })
  return {
    sink: observed,
    listIds,
    waitForBegin: () => waitUntil(() => sink.kept !== undefined),
    waitForMails: (n: number) => waitUntil(() => listIds().length >= n),
  }
}

function start(observer: ReturnType<typeof createSinkObserver>, more: object, log: Log = silentLog): MailWatcher {
  watcher = startWatcher({
    dir,
    gmail: toGmail(google, more),
    sink: observer.sink,
    gate: { clientOf: () => '', readLockSeconds: () => undefined, fail() {} },
    verifier: toVerifier(() => Date.now() + later),
    log,
    clock: () => Date.now() + later,
    pause,
  })
  return watcher
}

const notify = (historyId: number) => google.pubsub.publish({ emailAddress: account, historyId })
const topic = `projects/${project}/topics/hookloom-gmail`
const addSubscription = () =>
  google.pubsub.subscriptions.set(`projects/${project}/subscriptions/hookloom-gmail`, { topic })

describe('a watched mailbox, by pull', () => {
  test('three mails in one notification become three deliveries', async () => {
    addSubscription()
    const observer = createSinkObserver()
    start(observer, { mode: 'pull', project })
    await observer.waitForBegin()
    google.mailbox.receive({ id: 'a' }, { id: 'b' }, { id: 'c' })
    notify(google.mailbox.historyId)
    await observer.waitForMails(3)
    expect(observer.listIds()).toEqual(['a', 'b', 'c'])
  })

  test('a late or repeated notification only starts a sync', async () => {
    addSubscription()
    const observer = createSinkObserver()
    start(observer, { mode: 'pull', project })
    await observer.waitForBegin()
    google.mailbox.receive({ id: 'a' }, { id: 'b' })
    for (const historyId of [1020, 1010, 1010, 7]) notify(historyId)
    await observer.waitForMails(2)
    await google.pubsub.waitForPull()
    google.mailbox.receive({ id: 'c' })
    notify(1020)
    await observer.waitForMails(3)
    await google.pubsub.waitForPull()
    expect(observer.listIds()).toEqual(['a', 'b', 'c'])
    expect(google.pubsub.waiting()).toBe(0)
  })

  test('a notification is not acknowledged before its mails are delivered', async () => {
    addSubscription()
    const observer = createSinkObserver()
    let waitingAtDelivery = -1
    const { deliver } = observer.sink
    observer.sink.deliver = async (payloads, state) => {
      if (payloads.length > 0) waitingAtDelivery = google.pubsub.waiting()
      await deliver(payloads, state)
    }
    start(observer, { mode: 'pull', project })
    await observer.waitForBegin()
    google.mailbox.receive({ id: 'a' })
    notify(1)
    await observer.waitForMails(1)
    expect(waitingAtDelivery).toBe(1)
  })

  test('a watched mailbox is synced every quarter of an hour, in case a notification is lost', async () => {
    addSubscription()
    const observer = createSinkObserver()
    start(observer, { mode: 'pull', project })
    await observer.waitForBegin()
    await waitForPauses(15 * 60_000, 2)
    google.mailbox.receive({ id: 'a' })
    await endWaits(15 * 60_000)
    await observer.waitForMails(1)
    expect(google.pubsub.waiting()).toBe(0)
  })
})

describe('a watched mailbox, by poll', () => {
  test('a polled mailbox is synced every pollSeconds without Pub/Sub', async () => {
    const observer = createSinkObserver()
    start(observer, { mode: 'poll', pollSeconds: 20 })
    await observer.waitForBegin()
    google.mailbox.receive({ id: 'a' })
    await endWaits(20_000)
    await observer.waitForMails(1)
    expect(google.requests.some((request) => /watch|subscriptions/.test(request))).toBe(false)
  })

  test('a watcher says reauth-required when the consent is revoked, and continues with a new one', async () => {
    google.refreshTokens.clear()
    const observer = createSinkObserver()
    const { consentLost, status } = start(observer, { mode: 'poll' })
    expect(String(await consentLost)).toMatch(/reauth-required/)
    expect(status()).toMatchObject({ state: 'reauth-required' })
    expect(status().problems.join()).not.toContain('refresh-1')
    google.refreshTokens.add('refresh-2')
    await writeConsent(dir, { ...consent, refreshToken: 'refresh-2' })
    await endWaits(10_000)
    await observer.waitForBegin()
    expect(status().problems).toEqual([])
  })

  test('a watcher with a service account does not suggest "gmail auth", and continues when Google accepts the key again', async () => {
    writeFileSync(join(dir, 'key.json'), JSON.stringify(google.serviceAccountKey))
    google.fail('/token', { status: 401, body: { error: 'unauthorized_client' } })
    const observer = createSinkObserver()
    const { consentLost, status } = start(observer, { mode: 'poll', serviceAccountKey: 'key.json' })
    expect(String(await consentLost)).toMatch(/domain-wide delegation/)
    expect(String(await consentLost)).not.toContain('gmail auth')
    await endWaits(10_000)
    await waitForPauses(10_000)
    expect(status().state).toBe('reauth-required')
    later = 5 * 60_000
    await endWaits(10_000)
    await observer.waitForBegin()
    await waitForPauses(30_000)
    expect(status()).toMatchObject({ state: 'watching', problems: [] })
  })

  test('a problem of the watcher is in the status file before the log names it', async () => {
    google.refreshTokens.clear()
    const status = await new Promise<unknown>((resolve) => {
      const error = () => resolve(existsSync(toStatusFile(dir)) && JSON.parse(readFileSync(toStatusFile(dir), 'utf8')))
      start(createSinkObserver(), { mode: 'poll' }, { ...silentLog, error })
    })
    expect(status).toMatchObject({ state: 'reauth-required' })
  })

  test('a watcher writes its status to a file, without a secret', async () => {
    const observer = createSinkObserver()
    const running = start(observer, { mode: 'poll' })
    await observer.waitForBegin()
    await running.stop()
    watcher = undefined
    const found = await readStatus(toStatusFile(dir))
    expect(found).toMatchObject({ account, mode: 'poll', state: 'stopped', pid: process.pid })
    expect(JSON.stringify(found)).not.toMatch(/refresh|access|secret/)
  })
})

describe('the subscription of a watched mailbox', () => {
  const push = { port: 0, endpoint: 'https://mail.example.org/gmail-pubsub', serviceAccount: pushServiceAccount }
  const name = `projects/${project}/subscriptions/hookloom-gmail`

  test.each([
    ['belongs to another topic', () => google.pubsub.subscriptions.set(name, { topic: `${topic}-2` })],
    ['belongs to a topic that was deleted', () => google.pubsub.subscriptions.set(name, { topic: '_deleted-topic_' })],
    ['does not exist', () => google.pubsub.subscriptions.delete(name)],
  ])('a subscription that %s is shown in the status until it is in order', async (_, spoil) => {
    addSubscription()
    spoil()
    const { status } = start(createSinkObserver(), { mode: 'push', project, push })
    await waitForPauses(3_600_000)
    expect(status().state).toBe('failing')
    expect(status().problems).toEqual([
      expect.stringMatching(/hookloom-gmail (belongs|does not).*hookloom gmail setup/),
    ])
    addSubscription()
    await endWaits(3_600_000)
    await waitForPauses(3_600_000)
    expect(status().problems).toEqual([])
  })

  test('an account that may not read the settings of the subscription still watches', async () => {
    addSubscription()
    google.fail(name, { status: 403, body: { error: { status: 'PERMISSION_DENIED' } } })
    const observer = createSinkObserver()
    const { status } = start(observer, { mode: 'push', project, push })
    await observer.waitForBegin()
    await waitForPauses(3_600_000)
    expect(status().problems).toEqual([])
  })
})

describe('the renewal of a watch', () => {
  test('a failed watch is shown in the status and tried again after a minute, and its success clears the problem', async () => {
    addSubscription()
    google.fail('/watch', { status: 403, body: { error: { status: 'PERMISSION_DENIED' } } })
    const observer = createSinkObserver()
    const { status } = start(observer, { mode: 'pull', project })
    await observer.waitForBegin()
    await waitForPauses(60_000)
    expect(status().state).toBe('failing')
    expect(status().problems).toEqual([expect.stringMatching(/watch: Google answered 403 \(PERMISSION_DENIED\)/)])
    await endWaits(60_000)
    // the wait for the fallback sync, and the wait for the next check of the watch
    await waitForPauses(15 * 60_000, 2)
    expect(status()).toMatchObject({ state: 'watching', problems: [] })
    expect(status().watchExpiresAt).toBeGreaterThan(Date.now())
  })

  const hour = 3_600_000
  test.each([
    [{ age: 11 * hour, remains: 100 * hour }, false],
    [{ age: 12 * hour, remains: 100 * hour }, true],
    [{ age: 1 * hour, remains: 23 * hour }, true],
    [{ age: 60_000, remains: 23 * hour }, false],
  ])('the renewal of a watch with the times %j is due: %s', ({ age, remains }, due) => {
    const now = 1_000 * hour
    expect(isRenewalDue({ now, renewedAt: now - age, expiresAt: now + remains, renewMinutes: 720 })).toBe(due)
  })
})

describe('a watched mailbox, by push', () => {
  test('a watcher that is stopped while its receiver begins to listen stops at once', async () => {
    const push = { port: 0, endpoint: 'https://mail.example.org/gmail-pubsub', serviceAccount: pushServiceAccount }
    const stopped = start(createSinkObserver(), { mode: 'push', project, push })
    await stopped.stop()
    expect(stopped.status().state).toBe('stopped')
  })
})
