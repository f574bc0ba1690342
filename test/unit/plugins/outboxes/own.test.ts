// Outboxes of plugins: what their exceptions, their silence and their invalid pages mean.
import { describe, expect, test } from 'vitest'
import { limitOutbox } from '../../../../src/plugins/outboxes/shared/own.ts'
import type { Outbox, OutboxDefinition, OutboxHost, OutboxPage } from '../../../../src/model/outbox.ts'

const never = () => new Promise<never>(() => {})
const answer = { status: 200, headers: new Headers(), text: '[]', now: 0 }
const host: OutboxHost = { clock: () => 0, openApi: () => async () => answer }

const sound: Outbox = {
  name: 'locker',
  remembers: true,
  hasTimes: true,
  overlap: 7,
  async *pages() {
    yield { attempts: [{ id: 'p1', place: 1, isDelivered: false, ref: 'r' }], now: 2 }
  },
  fetch: async () => undefined,
  state: async () => ({ isOn: true }),
  turnOn: async () => {},
}

function open(
  given: Partial<Outbox> | OutboxDefinition['create'],
  options: { idleMs?: number; host?: OutboxHost } = {},
) {
  const create = typeof given === 'function' ? given : () => ({ ...sound, ...given })
  const definition = { name: 'locker', about: 'x', remembers: true, options: undefined as never, create }
  const plugin = { label: 'locker.ts', describeThrown: () => 'a TypeError at locker.ts:3' }
  return limitOutbox(definition, plugin, options.idleMs).create({}, options.host ?? host)
}

async function readPages(outbox: Outbox): Promise<OutboxPage[]> {
  const pages: OutboxPage[] = []
  for await (const page of outbox.pages()) pages.push(page)
  return pages
}

describe('an outbox of a plugin', () => {
  test('a sound outbox is used as it is', async () => {
    const outbox = open({})
    expect(await readPages(outbox)).toMatchObject([{ attempts: [{ id: 'p1' }], now: 2 }])
    expect([outbox.name, outbox.overlap, await outbox.state()]).toEqual(['locker', 7, { isOn: true }])
  })

  test.each([
    ['pages', (outbox: Outbox) => readPages(outbox)],
    ['state', (outbox: Outbox) => outbox.state()],
    ['turnOn', (outbox: Outbox) => outbox.turnOn()],
    ['fetch', (outbox: Outbox) => outbox.fetch({ id: 'p1', ref: 'r' })],
  ])('a %s that throws, or that never ends, is a failed pass that names the plugin', async (name, call) => {
    const thrown = () => {
      throw new TypeError('no')
    }
    await expect(call(open({ [name]: thrown }))).rejects.toThrow(
      'The outbox locker.ts threw a TypeError at locker.ts:3.',
    )
    const hanging = name === 'pages' ? () => ({ [Symbol.asyncIterator]: () => ({ next: never }) }) : never
    await expect(call(open({ [name]: hanging }, { idleMs: 40 }))).rejects.toThrow('did not go on within 0.04 s')
  })

  test('a create that throws fails each call of this outbox only', async () => {
    const outbox = open(() => {
      throw new TypeError('no')
    })
    await expect(readPages(outbox)).rejects.toThrow('The outbox locker.ts threw')
    await expect(outbox.state()).rejects.toThrow('The outbox locker.ts threw')
  })

  test('the time of a call of the API does not count: the API may ask to wait', async () => {
    const slow: OutboxHost = {
      clock: () => 0,
      openApi: () => async () => {
        await new Promise((done) => setTimeout(done, 300))
        return answer
      },
    }
    const outbox = open(
      (_, { openApi }) => ({
        ...sound,
        async state() {
          await openApi({ baseUrl: 'http://x', authorize: () => ({}) })({ path: '/' })
          return { isOn: true }
        },
      }),
      { idleMs: 60, host: slow },
    )
    expect(await outbox.state()).toEqual({ isOn: true })
  })

  test.each([[{ attempts: [{ id: 7 }] }], [{}], [undefined]])('the page %j is no page', async (page) => {
    const outbox = open({
      async *pages() {
        // as: authors may yield anything
        yield page as never
      },
    })
    await expect(readPages(outbox)).rejects.toThrow('gave no page')
  })
})
