// Values arrive as they were sent: in a template, a transform, a condition, a session key, and for each item of a list.
import { beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { describeEngines } from './engines.ts'
import { gatewayToken, hookToken } from './gateway.ts'
import type { Inside } from './inside.ts'

type Sent = {
  readonly what: string
  readonly type?: string
  readonly body: string | Uint8Array<ArrayBuffer>
  /** A path, and the text of its value in a template. */
  readonly path: string
  readonly text: string
  /** What the condition on the path wants; the text by default. */
  readonly wanted?: unknown
  /** The payload in a transform, as JSON; that of the body by default. */
  readonly seen?: string
}

const latin1 = (text: string) => new Uint8Array(Buffer.from(text, 'latin1'))
const form = 'application/x-www-form-urlencoded'
const big = '653247040368672769'

const bodies: readonly Sent[] = [
  { what: 'a whole number above 2^53', body: `{"id":${big}}`, path: 'id', text: big, seen: `{"id":"${big}"}` },
  {
    what: 'the number before it',
    body: '{"id":653247040368672768}',
    path: 'id',
    text: '653247040368672768',
    seen: '{"id":"653247040368672768"}',
  },
  { what: 'a number that ends in zeros', body: '{"v":1.50}', path: 'v', text: '1.50', wanted: 1.5, seen: '{"v":1.5}' },
  { what: 'a number that overflows', body: '{"w":1e400}', path: 'w', text: '1e400', seen: '{"w":"1e400"}' },
  {
    what: 'a number with twenty digits',
    body: '{"w":0.12345678901234567890}',
    path: 'w',
    text: '0.12345678901234567890',
    seen: '{"w":"0.12345678901234567890"}',
  },
  {
    what: 'an object with a large number',
    body: `{"a":{"id":${big},"n":[1.10]}}`,
    path: 'a',
    text: `{"id":${big},"n":[1.10]}`,
    wanted: { exists: true },
    seen: `{"a":{"id":"${big}","n":[1.1]}}`,
  },
  {
    what: 'a key with dots',
    body: '{"fields":{"System.Title":"Fix it"}}',
    path: 'fields["System.Title"]',
    text: 'Fix it',
  },
  {
    what: 'a key with dots and slashes',
    body: '{"commonLabels":{"app.kubernetes.io/name":"web"}}',
    path: "commonLabels['app.kubernetes.io/name']",
    text: 'web',
  },
  {
    what: 'a key with brackets',
    type: form,
    body: 'data%5Bemail%5D=a%40b.c',
    path: '["data[email]"]',
    text: 'a@b.c',
    seen: '{"data[email]":"a@b.c"}',
  },
  {
    what: 'half an emoji',
    body: '{"a":"x\\ud83d"}',
    path: 'a',
    text: 'x\ufffd',
    wanted: { exists: true },
    seen: '{"a":"x\\ud83d"}',
  },
  { what: 'an emoji', body: '{"a":"x\\ud83d\\ude00"}', path: 'a', text: 'x😀', seen: '{"a":"x😀"}' },
  { what: 'JSON without a content type', body: '{"service":"billing"}', path: 'service', text: 'billing' },
  {
    what: 'JSON that is declared as a form',
    type: form,
    body: '{"service":"billing"}',
    path: 'service',
    text: 'billing',
  },
  {
    what: 'JSON in Latin-1',
    type: 'application/json; charset=iso-8859-1',
    body: latin1('{"a":"café"}'),
    path: 'a',
    text: 'café',
    seen: '{"a":"café"}',
  },
  {
    what: 'a form in Latin-1',
    type: `${form}; charset=iso-8859-1`,
    body: 'Event=caf%E9',
    path: 'Event',
    text: 'café',
    seen: '{"Event":"café"}',
  },
  {
    what: 'JSON in the field of a form',
    type: form,
    body: 'payload=%7B%22id%22%3A653247040368672769%7D',
    path: 'id',
    text: big,
    seen: `{"id":"${big}"}`,
  },
  { what: 'a root array', body: '[{"event":"open"}]', path: '[0].event', text: 'open' },
  {
    what: 'a list of objects',
    body: '{"issue":{"labels":[{"name":"a"},{"name":"bug"}]}}',
    path: 'issue.labels[1].name',
    text: 'bug',
  },
  {
    what: 'a key that JavaScript knows',
    body: '{"constructor":{"name":"x"}}',
    path: 'constructor.name',
    text: '',
    wanted: { exists: false },
  },
]
const parameters = bodies.map((sent, index) => ({ ...sent, index }))

const lists = [
  {
    what: 'the root',
    forEach: 'payload',
    body: `[{"id":${big}},{"id":2.50}]`,
    template: '{{[0].id}}',
    texts: [big, '2.50'],
  },
  {
    what: 'a path',
    forEach: 'data.events',
    body: '{"data":{"events":[{"n":1},{"n":2}],"of":"x"}}',
    template: '{{data.of}}{{data.events[0].n}}',
    texts: ['x1', 'x2'],
  },
  {
    what: 'a quoted path',
    forEach: 'data["a.b"]',
    body: '{"data":{"a.b":[{"n":1},{"n":2}]}}',
    template: '{{data["a.b"][0].n}}',
    texts: ['1', '2'],
  },
]

/** The path in the item of a list that `forEach` names. */
const toItemPath = (path: string) => `list[0]${path.startsWith('[') ? '' : '.'}${path}`
const items = parameters.filter(({ type, body }) => type === undefined && typeof body === 'string')

const seen = { transform: { module: 'seen.ts' }, messageTemplate: 'x', deliver: false }
const mappings = [
  ...bodies.flatMap(({ path, text, wanted = text }, index) => [
    {
      match: { path: `template-${index}`, payload: { [path]: wanted } },
      messageTemplate: `<{{${path}}}>`,
      sessionKey: `hook:value:${index}:{{${path}}}`,
      deliver: false,
    },
    { match: { path: `seen-${index}` }, ...seen },
    {
      match: { path: `item-${index}` },
      forEach: 'list',
      messageTemplate: `<{{${toItemPath(path)}}}>`,
      sessionKey: `hook:item:{{${toItemPath(path)}}}`,
      deliver: false,
    },
  ]),
  ...lists.map(({ forEach, template }, index) => ({
    match: { path: `list-${index}` },
    forEach,
    messageTemplate: template,
    sessionKey: `hook:item:${template}`,
    deliver: false,
  })),
  { match: { path: 'empty' }, accept: ['empty'], ...seen },
]
const files = {
  'hooks/transforms/seen.ts': 'export default ({ payload }) => ({ message: `seen ${JSON.stringify(payload)}` })',
}

const Shown = z.looseObject({
  actions: z.array(z.looseObject({ message: z.string(), sessionKey: z.string().optional() })),
})

describeEngines('a value', (start) => {
  let gateway: Inside

  beforeAll(async () => {
    gateway = await start({ config: { hooks: { mappings } }, files })
  })

  async function post(hook: string, body: string | Uint8Array<ArrayBuffer>, type?: string) {
    const headers = { authorization: `Bearer ${hookToken}`, ...(type === undefined ? {} : { 'content-type': type }) }
    // a body of bytes gets no content type from fetch
    const sent = typeof body === 'string' ? Buffer.from(body) : body
    const answer = await fetch(`${gateway.url}/${hook}`, { method: 'POST', headers, body: sent })
    const text = await answer.text()
    expect([answer.status, text]).toEqual([200, expect.stringContaining('"ok":true')])
    const { deliveryId } = z.looseObject({ deliveryId: z.string() }).parse(JSON.parse(text))
    const shown = await fetch(`${gateway.adminUrl}/api/deliveries/${deliveryId}`, {
      headers: { authorization: `Bearer ${gatewayToken}` },
    })
    return Shown.parse(await shown.json()).actions
  }

  test.each(parameters)(
    'of $what is in the template, the condition and the session key as it was sent',
    async (sent) => {
      const { index, body, text, type } = sent
      const [action] = await post(`template-${index}`, body, type)
      expect(action).toMatchObject({ message: `<${text}>`, sessionKey: `hook:value:${index}:${text}` })
    },
  )

  test.each(parameters)('of $what reaches a transform', async ({ index, body, type, seen: expected = body }) => {
    const [action] = await post(`seen-${index}`, body, type)
    expect(action?.message).toBe(`seen ${expected}`)
  })

  test.each(items)('of $what is in each item of a list as it was sent', async ({ index, body, text }) => {
    const actions = await post(
      `item-${index}`,
      `{"list":[${String(body)},{"other":1},${String(body)}]}`,
      'application/json',
    )
    const texts = [text, '', text]
    expect(actions.map(({ message }) => message)).toEqual(texts.map((each) => `<${each}>`))
    expect(actions.map(({ sessionKey }) => sessionKey)).toEqual(texts.map((each) => `hook:item:${each}`))
  })

  test.each(lists.map((list, index) => ({ ...list, index })))(
    'of each item of a list at $what is an action',
    async (list) => {
      const actions = await post(`list-${list.index}`, list.body, 'application/json')
      expect(actions.map(({ message }) => message)).toEqual(list.texts)
      expect(actions.map(({ sessionKey }) => sessionKey)).toEqual(list.texts.map((text) => `hook:item:${text}`))
    },
  )

  test('of an empty body is null where the mapping accepts it', async () => {
    expect((await post('empty', ''))[0]?.message).toBe('seen null')
  })
})
