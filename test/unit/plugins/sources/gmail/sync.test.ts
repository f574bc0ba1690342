import assert from 'node:assert'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Problem } from '../../../../../src/core/model/problem.ts'
import { type FakeGoogle, startGoogle } from '../../../../e2e/fakes/google.ts'
import { createStage } from './stage.ts'

let google: FakeGoogle
beforeEach(async () => void (google = await startGoogle()))
afterEach(() => assert.deepEqual(google.faults, []))

describe('a sync of a mailbox', () => {
  test('a first sync takes no existing mail, and later syncs take every new mail', async () => {
    const stage = createStage(google)
    google.mailbox.receive({ id: 'old' })
    expect(await stage.sync()).toEqual({ mails: 0, gap: false })
    google.mailbox.receive({ id: 'a', subject: 'One', text: 'Text of a' })
    expect(await stage.sync()).toEqual({ mails: 1, gap: false })
    expect(stage.sink.delivered[0]).toMatchObject({
      source: 'gmail',
      account: 'desk@example.org',
      messages: [
        { id: 'a', from: 'Mira <mira@example.com>', to: 'desk@example.org', subject: 'One', body: 'Text of a' },
      ],
    })
    expect(await stage.sync()).toEqual({ mails: 0, gap: false })
  })

  test('a sync reads all pages of the history, and takes each message once, even if it is listed twice', async () => {
    const stage = createStage(google)
    await stage.sync()
    google.mailbox.pageSize = 2
    google.mailbox.receive(...['a', 'b', 'c'].map((id) => ({ id })), { id: 'b' }, { id: 'd' })
    await stage.sync()
    expect(stage.listIds()).toEqual(['a', 'b', 'c', 'd'])
    expect(google.requests.filter((request) => request.endsWith('/messages/b'))).toHaveLength(1)
  })

  test.each(['SPAM', 'TRASH', 'DRAFT', 'SENT'])('a sync leaves out mails with the label %s', async (label) => {
    const stage = createStage(google)
    await stage.sync()
    google.mailbox.receive({ id: 'no', labels: ['INBOX', label] }, { id: 'yes' })
    await stage.sync()
    expect(stage.listIds()).toEqual(['yes'])
  })

  test('a sync takes mails with one of several labels, and leaves out mails without any of them', async () => {
    const stage = createStage(google, { labels: ['Label_1', 'Label_2'] })
    await stage.sync()
    google.mailbox.receive({ id: 'no' }, { id: 'one', labels: ['Label_2'] })
    await stage.sync()
    expect(stage.listIds()).toEqual(['one'])
  })

  test('a sync asks Gmail which mails the operator’s search finds', async () => {
    const stage = createStage(google, { query: 'subject:bill' })
    await stage.sync()
    google.mailbox.receive({ id: 'no', subject: 'lunch' }, { id: 'yes', subject: 'the bill' })
    await stage.sync()
    expect(stage.listIds()).toEqual(['yes'])
  })

  test('a backlog that is longer than a search can list loses no mail that the operator’s search finds', async () => {
    let now = Date.now()
    google = await startGoogle({ clock: () => now })
    const stage = createStage(google, { query: 'subject:bill' })
    await stage.sync()
    google.mailbox.listSize = 55
    const ids = Array.from({ length: 60 }, (_, index) => `m${index}`)
    for (const id of ids) {
      now += 1_000
      google.mailbox.receive({ id, subject: 'the bill' })
    }
    await stage.sync()
    expect(stage.listIds()).toEqual(ids)
  })

  test('a sync skips a message that was deleted before it was fetched', async () => {
    const stage = createStage(google)
    await stage.sync()
    google.mailbox.receive({ id: 'gone' }, { id: 'there' })
    google.mailbox.remove('gone')
    await stage.sync()
    expect(stage.listIds()).toEqual(['there'])
  })

  test('a sync fetches text that Gmail stores apart from its mail, but only the part that a client shows', async () => {
    const stage = createStage(google)
    await stage.sync()
    google.mailbox.receive({ id: 'a', text: 'plain', html: '<p>Large report</p>', storedApart: true }, { id: 'b' })
    await stage.sync()
    expect(stage.sink.delivered[0]?.messages[0]).toMatchObject({ body: 'Large report', bodyTruncated: false })
    expect(google.requests.filter((request) => request.includes('/attachments/'))).toEqual([
      expect.stringMatching(/\/messages\/a\/attachments\/stored-html$/),
    ])
  })

  test('a sync does not fetch separate text over 4 MB, and the mail is marked as truncated', async () => {
    const stage = createStage(google)
    await stage.sync()
    google.mailbox.receive({ id: 'a', html: '<p>Report</p>', storedApart: 4_194_305 })
    await stage.sync()
    expect(stage.sink.delivered[0]?.messages[0]).toMatchObject({ body: '', bodyTruncated: true })
    expect(google.requests.filter((request) => request.includes('/attachments/'))).toEqual([])
  })

  test.each([404, 413, 400])(
    'a mail whose separate text is answered with %i is delivered without that text',
    async (status) => {
      const stage = createStage(google)
      await stage.sync()
      google.fail('/attachments/', { status, body: {} })
      google.mailbox.receive({ id: 'a', html: '<p>Report</p>', storedApart: true }, { id: 'b', text: 'next' })
      await stage.sync()
      expect(stage.sink.delivered.map(({ messages: [{ body, bodyTruncated }] }) => [body, bodyTruncated])).toEqual([
        ['', true],
        ['next', false],
      ])
    },
  )

  test('a sync takes a mail that is nested too deeply without its body, and also the mails after it', async () => {
    const stage = createStage(google)
    await stage.sync()
    const inner = { mimeType: 'text/plain', body: { data: 'aGk' } }
    const payload = Array.from({ length: 1500 }).reduce<object>((part) => ({ parts: [part] }), inner)
    google.mailbox.receive({ id: 'deep', subject: 'Deep', payload }, { id: 'behind' })
    await stage.sync()
    expect(stage.listIds()).toEqual(['deep', 'behind'])
    expect(stage.sink.delivered[0]).toMatchObject({ messages: [{ subject: 'Deep', body: '' }] })
  })

  test('a sync takes a mail whose HTML cannot be converted, and also the mails around it', async () => {
    const stage = createStage(google)
    await stage.sync()
    google.mailbox.receive(
      { id: 'before' },
      { id: 'numerals', html: '<ol type="I" start="10000"><li>item</li></ol>' },
      { id: 'behind' },
    )
    await stage.sync()
    expect(stage.listIds()).toEqual(['before', 'numerals', 'behind'])
  })

  test.each([
    ['a text instead of its parts', { id: 'odd', payload: 'text' }],
    ['an invalid date', { id: 'odd', internalDate: 'yesterday' }],
    ['labels, a snippet and a thread id of a wrong type', { id: 'odd', labelIds: 'INBOX', snippet: 7, threadId: {} }],
    ['an array instead of a message', []],
  ])('a sync delivers a mail that Gmail answers with %s, and the mail after it', async (_, body) => {
    const stage = createStage(google)
    await stage.sync()
    google.mailbox.receive({ id: 'odd' }, { id: 'behind' })
    google.fail('/messages/odd', { body })
    if ('id' in body) google.fail('/messages/odd', { body })
    await stage.sync()
    expect(stage.listIds()).toEqual(['odd', 'behind'])
  })

  test('a sync delivers the mails around a mail that Gmail withholds, keeps its position, and takes the withheld mail later', async () => {
    const stage = createStage(google)
    await stage.sync()
    const { kept } = stage.sink
    google.mailbox.receive(...Array.from({ length: 60 }, (_, index) => ({ id: `m${index}` })))
    google.fail('/messages/m3', ...Array.from({ length: 5 }, () => ({ status: 500 })))
    await expect(stage.sync()).rejects.toMatchObject({ code: 'gmail-unavailable' })
    expect(stage.listIds()).toHaveLength(59)
    expect(stage.listIds()).not.toContain('m3')
    expect(stage.sink.kept?.historyId).toBe(kept?.historyId)
    await stage.sync()
    expect(stage.listIds().at(-1)).toBe('m3')
    expect(stage.sink.kept?.historyId).not.toBe(kept?.historyId)
  })

  test('a sync finds new mails by search if the history has expired, each of them once', async () => {
    const stage = createStage(google)
    await stage.sync()
    google.mailbox.receive({ id: 'a' })
    await stage.sync()
    google.mailbox.receive({ id: 'b' }, { id: 'spam', labels: ['SPAM'] })
    google.mailbox.expire()
    expect(await stage.sync()).toMatchObject({ gap: true })
    expect(stage.listIds()).toEqual(['a', 'b'])
    google.mailbox.receive({ id: 'c' })
    expect(await stage.sync()).toEqual({ mails: 1, gap: false })
  })

  test('if the history has expired, a sync finds the new mails of each label, however many another label has', async () => {
    const stage = createStage(google, { labels: ['INBOX', 'Label_7'] })
    await stage.sync()
    google.mailbox.receive({ id: 'other', labels: ['Label_7'] })
    google.mailbox.receive(...Array.from({ length: 100 }, (_, at) => ({ id: `m${at}` })))
    google.mailbox.expire()
    expect(await stage.sync()).toMatchObject({ gap: true })
    expect(stage.listIds()).toContain('other')
    expect(stage.listIds()).toHaveLength(101)
  })

  test.each([
    [429, { error: { code: 429, status: 'RESOURCE_EXHAUSTED' } }],
    [403, { error: { code: 403, errors: [{ reason: 'userRateLimitExceeded' }] } }],
    [403, { error: { code: 403, errors: [{ reason: 'rateLimitExceeded' }] } }],
    [503, {}],
  ])('a sync to which Gmail answers %i slows down and loses nothing', async (status, body) => {
    const stage = createStage(google)
    await stage.sync()
    google.mailbox.receive({ id: 'a' })
    google.fail('/history', { status, body }, { status, body, headers: { 'retry-after': '7' } })
    google.fail('/messages/a', { status, body })
    await stage.sync()
    expect(stage.listIds()).toEqual(['a'])
    expect(stage.waits).toEqual([1000, 7000, 1000])
  })

  test('a sync waits until the date that Gmail names, by Gmail’s own clock', async () => {
    const stage = createStage(google)
    const headers = { date: 'Wed, 21 Oct 2015 07:28:00 GMT', 'retry-after': 'Wed, 21 Oct 2015 07:28:30 GMT' }
    google.fail('/profile', { status: 429, headers })
    await stage.sync()
    expect(stage.waits).toEqual([30_000])
  })

  test('a sync gives up if Gmail is down, and keeps its position', async () => {
    const stage = createStage(google)
    await stage.sync()
    const { kept } = stage.sink
    google.mailbox.receive({ id: 'a' }, { id: 'b' })
    google.fail('/messages/b', ...Array.from({ length: 5 }, () => ({ status: 500 })))
    await expect(stage.sync()).rejects.toMatchObject({ code: 'gmail-unavailable' })
    expect(stage.sink.kept).toEqual(kept)
    await stage.sync()
    expect(stage.listIds()).toEqual(['a', 'b'])
  })

  test('a sync says that the consent was revoked, without a token in the message', async () => {
    const stage = createStage(google)
    google.refreshTokens.clear()
    const failed = await stage.sync().catch((error: unknown) => error)
    expect(failed).toBeInstanceOf(Problem)
    expect(failed).toMatchObject({ code: 'gmail-consent-missing' })
    expect(String(failed)).toMatch(/reauth-required.*hookloom gmail auth/)
    expect(String(failed)).not.toContain('refresh-1')
  })

  test('a sync fetches a new token if Google no longer accepts the old one', async () => {
    const stage = createStage(google)
    google.fail('/profile', { status: 401 })
    expect(await stage.sync()).toEqual({ mails: 0, gap: false })
    expect(google.requests.filter((request) => request === 'POST /token')).toHaveLength(2)
  })

  test('a late refusal of an old token does not drop the new one', async () => {
    const stage = createStage(google)
    let release = (): void => {}
    const released = new Promise<void>((resolve) => (release = resolve))
    let profiles = 0
    google.onRequest('/profile', async () => {
      profiles += 1
      if (profiles === 2) await released
    })
    google.fail('/profile', { status: 401 })
    const syncs = [stage.sync(), stage.sync()]
    await Promise.race(syncs)
    google.fail('/profile', { status: 401 })
    release()
    await Promise.all(syncs)
    expect(google.requests.filter((request) => request === 'POST /token')).toHaveLength(2)
  })

  test('a sync does not repeat a call that Google refuses permanently, and names the API that is turned off', async () => {
    const stage = createStage(google)
    google.fail('/profile', { status: 403, body: { error: { errors: [{ reason: 'accessNotConfigured' }] } } })
    await expect(stage.sync()).rejects.toThrow(/accessNotConfigured.*Enable this API/)
    expect(stage.waits).toEqual([])
  })

  test('a mail that cannot be fetched keeps back the position of a sync of two hundred mails, and only that mail is missing', async () => {
    const stage = createStage(google)
    await stage.sync()
    const ids = Array.from({ length: 200 }, (_, index) => `m${index}`)
    google.mailbox.receive(...ids.map((id) => ({ id })))
    google.fail('/messages/m170', ...Array.from({ length: 5 }, () => ({ status: 500 })))
    const before = stage.sink.kept?.historyId
    await expect(stage.sync()).rejects.toThrow('500')
    expect(stage.listIds()).toEqual(ids.filter((id) => id !== 'm170'))
    expect(stage.sink.kept?.historyId).toBe(before)
    await stage.sync()
    expect(stage.listIds().toSorted()).toEqual(ids.toSorted())
  })

  test('a sync delivers the mails after one that the gateway refuses, but keeps its position', async () => {
    const stage = createStage(google)
    await stage.sync()
    const { deliver } = stage.sink
    stage.sink.deliver = async (payloads, state) => {
      const taken = payloads.filter(({ messages: [{ id }] }) => id !== 'm3')
      await deliver(taken, taken.length === payloads.length ? state : { historyId: '1000', syncedAt: 0 })
      if (taken.length < payloads.length) throw new Problem('payload-invalid', 'refused')
    }
    google.mailbox.receive(...Array.from({ length: 60 }, (_, index) => ({ id: `m${index}` })))
    await expect(stage.sync()).rejects.toThrow('refused')
    expect(stage.listIds()).toHaveLength(59)
    expect(stage.sink.kept?.historyId).toBe('1000')
  })

  test('a sync asks for only a few mails if Gmail withholds all of them', async () => {
    const stage = createStage(google)
    await stage.sync()
    google.mailbox.receive(...Array.from({ length: 60 }, (_, index) => ({ id: `m${index}` })))
    google.fail('/messages/', ...Array.from({ length: 300 }, () => ({ status: 500 })))
    await expect(stage.sync()).rejects.toThrow('500')
    expect(google.requests.filter((request) => request.includes('/messages/'))).toHaveLength(25)
  })
})
