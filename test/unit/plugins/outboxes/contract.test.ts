// The contract suite of `hookloom/testing`: the built-in outboxes keep all promises, and an outbox that breaks one is found.
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { defineOutbox, type Outbox, type OutboxHost } from '../../../../src/define.ts'
import { outboxes } from '../../../../src/plugins/outboxes/index.ts'
import { checkOutbox, type OutboxTrial } from '../../../../src/testing.ts'
import { basecampToken, startBasecamp } from '../../../e2e/fakes/basecamp-webhook.ts'
import { githubToken, startGitHub } from '../../../e2e/fakes/github-deliveries.ts'
import { gitlabToken, startGitLab } from '../../../e2e/fakes/gitlab-events.ts'
import { shopifyToken, startShopify } from '../../../e2e/fakes/shopify-subscriptions.ts'
import { startStripe, stripeKey } from '../../../e2e/fakes/stripe-events.ts'

vi.setConfig({ testTimeout: 30_000 })

const sent = (count: number, send: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => send(index))

type Api = { url: string; options: object; token: string; ids: string[]; delivered?: string[] }

/** The API of each sender with more than one page of deliveries, if it has pages: its URL, the options, the ids, and those that were delivered. */
const apis: Readonly<Record<string, () => Promise<Api>>> = {
  async github() {
    const fake = await startGitHub({ clock: Date.now, pageSize: 2 })
    const options = { repository: 'acme/app', hookId: '77', baseUrl: fake.url }
    const ids = sent(5, (index) => fake.addAttempt(index === 2 ? { status: 200 } : {}))
    return { url: fake.url, options, token: githubToken, ids, delivered: ids.slice(2, 3) }
  },
  async gitlab() {
    const fake = await startGitLab({ clock: Date.now })
    const options = { project: 'acme/app', hookId: '5', baseUrl: `${fake.url}/api/v4` }
    const ids = sent(45, (index) => fake.addAttempt(index === 2 ? { status: '200' } : {}))
    return { url: fake.url, options, token: gitlabToken, ids, delivered: ids.slice(2, 3) }
  },
  async stripe() {
    const fake = await startStripe({ clock: Date.now })
    const ids = sent(205, () => fake.addEvent())
    return { url: fake.url, options: { hookId: 'we_1', baseUrl: fake.url }, token: stripeKey, ids }
  },
  async basecamp() {
    const fake = await startBasecamp({ clock: Date.now })
    fake.addAttempt(7, 500)
    fake.addAttempt(8, 200)
    const options = { account: '195539477', hookId: '3', contact: 'ops@example.org', baseUrl: fake.url }
    return { url: fake.url, options, token: basecampToken, ids: ['7', '8'], delivered: ['8'] }
  },
  async shopify() {
    const fake = await startShopify({ clock: Date.now })
    const hook = { topics: ['orders/create', 'orders/paid'], url: 'https://hooks.example.org/hooks/shop' }
    for (const topic of ['ORDERS_EDITED', 'ORDERS_CREATE', 'ORDERS_DELETE'])
      fake.subscriptions.push({ topic, uri: hook.url })
    return {
      url: fake.url,
      options: { shop: 'acme.myshopify.com', ...hook, baseUrl: fake.url },
      token: shopifyToken,
      ids: [],
    }
  },
}

test.each(outboxes)('the outbox $name keeps the promises of an outbox', async (definition) => {
  const api = await apis[definition.name]?.()
  if (api === undefined) throw new Error(`no API of ${definition.name}`)
  const { url, options, token, ids, delivered = [] } = api
  const usualFetch = globalThis.fetch
  const asked: string[] = []
  const broken = await checkOutbox(definition, {
    options: { ...options, token },
    renewed: { ...options, token: 'another-credential' },
    ids: ids.toReversed(),
    undelivered: ids.filter((id) => !delivered.includes(id)),
    respond(request) {
      asked.push(request.url)
      return usualFetch(request)
    },
  })
  expect(broken).toEqual([])
  expect(asked.length).toBeGreaterThan(3)
  expect(asked.filter((one) => !one.startsWith(url))).toEqual([])
})

const ids = ['d-5', 'd-4', 'd-3', 'd-2', 'd-1']
const Page = z.object({ ids: z.array(z.string()), next: z.string().nullable() })
type Call = ReturnType<OutboxHost['openApi']>

/** The API lists two deliveries a page, without their requests. */
const trial: OutboxTrial = {
  options: { token: 'tk_0123456789' },
  renewed: { token: 'tk_9876543210' },
  ids,
  undelivered: ids.slice(0, 4),
  respond({ url, method }) {
    const { pathname, searchParams } = new URL(url)
    if (pathname === '/hook') return Response.json({ isOn: method === 'PATCH' })
    if (pathname !== '/list') return new Response(`body of ${pathname}`)
    const from = Number(searchParams.get('from'))
    return Response.json({ ids: ids.slice(from, from + 2), next: from + 2 < ids.length ? String(from + 2) : null })
  },
}

const toAttempt = (id: string) => ({
  id,
  ref: id,
  place: Number(id.slice(2)),
  isDelivered: id === 'd-1',
  headers: { 'x-id': id },
})

async function* readPages(call: Call) {
  for (let from: string | null = '0'; from !== null;) {
    const page: z.infer<typeof Page> = Page.parse(JSON.parse((await call({ path: `/list?from=${from}` })).text))
    yield { attempts: page.ids.map(toAttempt) }
    from = page.next
  }
}

function check(change: (good: Outbox, call: Call, token: string) => Partial<Outbox>): Promise<string[]> {
  const definition = defineOutbox({
    name: 'pier',
    about: 'The pier.',
    remembers: true,
    options: z.strictObject({ token: z.string() }),
    create({ token }, { openApi }) {
      const call = openApi({ baseUrl: 'https://pier.test', authorize: () => ({ authorization: `Bearer ${token}` }) })
      const good: Outbox = {
        name: 'pier 7',
        remembers: true,
        hasTimes: false,
        overlap: 0,
        pages: () => readPages(call),
        async fetch({ ref }) {
          const { status, text } = await call({ path: `/one/${ref}`, allow: [404] })
          return status === 404 ? undefined : { headers: {}, body: new TextEncoder().encode(text) }
        },
        async state() {
          const { isOn } = z.object({ isOn: z.boolean() }).parse(JSON.parse((await call({ path: '/hook' })).text))
          return isOn ? { isOn } : { isOn, why: 'It is off.' }
        },
        turnOn: async () => void (await call({ method: 'PATCH', path: '/hook' })),
      }
      return { ...good, ...change(good, call, token) }
    },
  })
  return checkOutbox(definition, trial)
}

test('an outbox that keeps all promises breaks none', async () => {
  expect(await check(() => ({}))).toEqual([])
})

async function* flat(pages: AsyncIterable<{ attempts: readonly ReturnType<typeof toAttempt>[] }>) {
  for await (const { attempts } of pages) yield* attempts
}
const lengthen = (id: string) => ({ ...toAttempt(id), id: `${id}!` })
let passes = 0

test.each<[what: string, change: Parameters<typeof check>[0], broken: string]>([
  [
    'reads one page only',
    (_, call) => ({
      async *pages() {
        for await (const page of readPages(call)) return void (yield page)
      },
    }),
    'pages leaves out 3 of 5 deliveries: d-3.',
  ],
  [
    'takes a failure for the end',
    (_, call) => ({
      async *pages() {
        const pages = readPages(call)
        for (;;) {
          const next = await pages.next().catch(() => ({ done: true as const, value: undefined }))
          if (next.done === true) return
          yield next.value
        }
      },
    }),
    'Answer 500: pages ends without an exception',
  ],
  [
    'reads all pages before the first is used',
    (_, call) => ({
      async *pages() {
        const attempts = []
        for await (const attempt of flat(readPages(call))) attempts.push(attempt)
        yield { attempts: attempts.slice(0, 2) }
        yield { attempts: attempts.slice(2) }
      },
    }),
    'pages asks for every page',
  ],
  [
    'lists the oldest first',
    (_, call) => ({
      async *pages() {
        for await (const { attempts } of readPages(call)) yield { attempts: attempts.toReversed() }
      },
    }),
    'pages does not list the newest attempt first.',
  ],
  [
    'takes each delivery for delivered',
    (_, call) => ({
      async *pages() {
        for await (const { attempts } of readPages(call))
          yield { attempts: attempts.map((attempt) => ({ ...attempt, isDelivered: true })) }
      },
    }),
    'pages says that d-5 was delivered, so it would never be fetched.',
  ],
  [
    'takes no delivery for delivered',
    (_, call) => ({
      async *pages() {
        for await (const { attempts } of readPages(call))
          yield { attempts: attempts.map((attempt) => ({ ...attempt, isDelivered: false })) }
      },
    }),
    'pages says that d-1 was not delivered, so it would be fetched.',
  ],
  [
    'gives each attempt an id of its own',
    (_, call) => ({
      async *pages() {
        passes += 1
        for await (const { attempts } of readPages(call))
          yield { attempts: passes > 1 ? attempts.map(({ id }) => lengthen(id)) : attempts }
      },
    }),
    'A second pass lists other attempts',
  ],
  [
    'never ends',
    () => ({
      async *pages() {
        for (;;) yield { attempts: ids.map(toAttempt) }
      },
    }),
    'pages does not end.',
  ],
  [
    'asks the API by itself',
    () => ({
      async *pages() {
        yield { attempts: ids.map(toAttempt) }
        await fetch('https://pier.test/list')
      },
    }),
    'A request does not go through openApi',
  ],
  [
    'names its cursor after the credential',
    (_, __, token) => ({ name: `pier ${token}` }),
    'The name has the credential.',
  ],
  ['says that its places are times, without a clock', () => ({ hasTimes: true }), 'A page has no now'],
  [
    'throws for a delivery that is gone',
    (_, call) => ({ fetch: async ({ ref }) => void (await call({ path: `/one/${ref}` })) }),
    'fetch does not return undefined for a delivery that the API no longer has.',
  ],
  [
    'takes a failure for a delivery that is gone',
    (good) => ({ fetch: (attempt) => good.fetch(attempt).catch(() => undefined) }),
    'Answer 500: fetch ends without an exception',
  ],
  [
    'does not know its state',
    (good) => ({ state: () => good.state().catch(() => ({ isOn: true })) }),
    'Answer 500: state returns',
  ],
])('an outbox that %s is found', async (_, change, broken) => {
  passes = 0
  expect(await check(change)).toContainEqual(expect.stringContaining(broken))
})
