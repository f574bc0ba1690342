// The inbox of the gateway over a store: mails and the position are stored in one commit, and each mail is one delivery.
import { describe, expect, test } from 'vitest'
import { createInbox } from '../../../../src/gateway/deliveries/sources.ts'
import { type GmailPayload, type MailSink, parseState, toMailKey } from '../../../../src/plugins/sources/gmail/mail.ts'
import { ConfigSchema } from '../../../../src/gateway/config/keys.ts'
import { silentLog } from '../../../../src/base/log.ts'
import { createGeneration } from '../../../../src/gateway/generation/generation.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import type { OpenDelivery } from '../../../../src/store/records.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

const account = 'desk@example.org'
const toPayload = (id: string): GmailPayload => ({
  source: 'gmail',
  account,
  historyId: '20',
  messages: [
    {
      id,
      threadId: 't',
      from: '',
      to: '',
      subject: id,
      date: '',
      snippet: '',
      body: '',
      bodyTruncated: false,
      attachments: [],
      labels: [],
    },
  ],
})

function createStage(store = createMemoryStore({ clock: () => 5 }), fails: readonly string[] = []) {
  const generation = createGeneration({
    senders: builtInSenders,
    config: ConfigSchema.parse({}),
    mappings: [],
    transforms: new Map(),
  })
  const ran: OpenDelivery[] = []
  const released: string[] = []
  let ids = 0
  const parts = {
    account,
    generation: () => generation,
    store,
    clock: () => 5,
    newId: () => `d-${(ids += 1)}`,
    log: silentLog,
  }
  const rerunner = {
    claim: async () => {},
    release: async (ids: readonly string[]) => void released.push(...ids),
    async rerun(open: OpenDelivery) {
      if (fails.includes(open.deliveryId)) throw new Error('it cannot be run')
      ran.push(open)
      return 'accepted'
    },
  }
  const repeated: string[] = []
  const repeats = { note: ({ deliveryId }: { deliveryId: string }) => void repeated.push(deliveryId) }
  const host = createInbox({ ...parts, name: 'gmail', rerunner, repeats })
  const inbox: MailSink = {
    async state() {
      const place = await host.place()
      return place === undefined ? undefined : parseState(place)
    },
    deliver: (payloads, state) =>
      host.store(
        payloads.map((payload) => ({ key: toMailKey(payload), payload })),
        JSON.stringify(state),
      ),
  }
  return { store, ran, released, repeated, inbox }
}

describe('inbox of the gateway', () => {
  test('the inbox stores its position together with the mails, and has no position at first', async () => {
    const { inbox, store } = createStage()
    expect(await inbox.state()).toBeUndefined()
    await inbox.deliver([toPayload('a'), toPayload('b')], { historyId: '20', syncedAt: 5 })
    expect(await inbox.state()).toEqual({ historyId: '20', syncedAt: 5 })
    expect((await store.counts()).deliveries.pending).toBe(2)
  })

  test('a mail is stored like a request to the hook: pending, with its request and its key', async () => {
    const { inbox, store } = createStage()
    await inbox.deliver([toPayload('a')], { historyId: '20', syncedAt: 5 })
    const [row] = await store.deliveries({ limit: 9 })
    expect(row).toMatchObject({ deliveryId: 'd-1', hook: 'gmail', source: 'gmail', state: 'pending' })
    expect(await store.findAnswer({ hook: 'gmail', key: `key:${toMailKey(toPayload('a'))}` })).toMatchObject({
      deliveryId: 'd-1',
      status: 200,
    })
    expect((await store.request('d-1'))?.head).toMatchObject({
      path: 'gmail',
      url: '/hooks/gmail',
      admitted: { token: true },
    })
  })

  test('each mail runs once, in order, and a mail that comes again counts as a repetition', async () => {
    const { inbox, ran, repeated } = createStage()
    await inbox.deliver([toPayload('a'), toPayload('b')], { historyId: '20', syncedAt: 5 })
    await inbox.deliver([toPayload('b'), toPayload('c')], { historyId: '30', syncedAt: 6 })
    await new Promise((resolve) => setImmediate(resolve))
    expect(ran.map(({ deliveryId }) => deliveryId)).toEqual(['d-1', 'd-2', 'd-4'])
    expect(repeated).toEqual(['d-2'])
  })

  test('a mail that cannot run does not stop the mails after it', async () => {
    const { inbox, ran } = createStage(undefined, ['d-1'])
    await inbox.deliver([toPayload('a'), toPayload('b')], { historyId: '20', syncedAt: 5 })
    await new Promise((resolve) => setImmediate(resolve))
    expect(ran.map(({ deliveryId }) => deliveryId)).toEqual(['d-2'])
  })

  test('a mail that is stored and cannot be read is left to other gateways', async () => {
    const store = createMemoryStore({ clock: () => 5 })
    const { inbox, released } = createStage({
      ...store,
      openDeliveries: () => Promise.reject(new Error('the connection is gone')),
    })
    await inbox.deliver([toPayload('a')], { historyId: '20', syncedAt: 5 })
    await new Promise((resolve) => setImmediate(resolve))
    expect(released).toEqual(['d-1'])
  })

  test('the position does not move if the store refuses the mails', async () => {
    const store = createMemoryStore({ clock: () => 5 })
    const { inbox } = createStage({ ...store, appendAll: () => Promise.reject(new Error('the disk is full')) })
    await expect(inbox.deliver([toPayload('a')], { historyId: '20', syncedAt: 5 })).rejects.toThrow('full')
    expect(await store.cursor('gmail:desk@example.org')).toBeUndefined()
  })
})
