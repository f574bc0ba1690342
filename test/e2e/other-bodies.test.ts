// Bodies that are not JSON: text and XML where a mapping accepts them, and multipart forms.
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { hookToken } from './gateway.ts'
import { type Inside, readStore, startInside } from './inside.ts'

const wake = { action: 'wake', wakeMode: 'next-heartbeat' } as const
const mappings = [
  { id: 'text', match: { path: 'notes' }, ...wake, accept: ['text'], textTemplate: 'Note: {{body | truncate: 40}}' },
  { id: 'xml', match: { path: 'notes' }, ...wake, accept: ['xml'] },
  { id: 'code', match: { path: 'code' }, ...wake, accept: ['text', 'xml'], transform: { module: 'lines.js' } },
  { id: 'json', match: { path: 'json' }, ...wake, textTemplate: '{{body}} {{author}} {{file.name}} {{file.size}}' },
]
const lines = 'export default ({ payload }) => ({ text: `${typeof payload} of ${payload.split("\\n").length} lines` })'

let gateway: Inside

beforeAll(async () => {
  gateway = await startInside({ config: { hooks: { mappings } }, files: { 'hooks/transforms/lines.js': lines } })
})

async function post(name: string, type: string | undefined, body: string | Uint8Array | FormData, token = hookToken) {
  const headers = { authorization: `Bearer ${token}`, ...(type === undefined ? {} : { 'content-type': type }) }
  const reply = await fetch(`${gateway.url}/${name}`, { method: 'POST', headers, body })
  const text = await reply.text()
  const { deliveryId, error } = z
    .looseObject({ deliveryId: z.string().optional(), error: z.string().optional() })
    .parse(text === '' ? {} : JSON.parse(text))
  return { status: reply.status, deliveryId, error }
}

/** The text of the event that a delivery made. */
async function readEvent(deliveryId: string | undefined) {
  const events = await readStore(gateway.dir, (store) => store.events({ limit: 1_000 }))
  return events.find((event) => event.deliveryId === deliveryId)?.text
}

describe('bodies of text and XML', () => {
  test.each([
    ['text/plain', 'the disk is full', 'Note: the disk is full'],
    ['text/csv; charset=utf-8', 'a,b', 'Note: a,b'],
    ['application/xml', '<a>ü</a>', '<a>ü</a>'],
    ['text/xml', '<a/>', '<a/>'],
    ['application/atom+xml', '<feed/>', '<feed/>'],
  ])('a body of type %s with the text %j reaches the mapping that accepts the type', async (type, body, expected) => {
    const { status, deliveryId } = await post('notes', type, body)
    expect(status).toBe(200)
    expect(await readEvent(deliveryId)).toBe(expected)
  })

  test('a transform gets the text of a body that is not JSON', async () => {
    const { deliveryId } = await post('code', 'text/plain', 'one\ntwo')
    expect(await readEvent(deliveryId)).toBe('string of 2 lines')
  })

  test('a body of text or XML is refused if no mapping of the hook accepts it, and the error names the accepted types', async () => {
    const refused = await post('json', 'text/plain', 'x')
    expect([refused.status, refused.error]).toEqual([
      415,
      'The content type must be application/json, application/x-www-form-urlencoded or multipart/form-data.',
    ])
    const wakes = await post('wake', 'text/plain', 'x')
    expect([wakes.status, wakes.error]).toEqual([415, 'The content type must be application/json.'])
    expect((await post('notes', 'image/png', 'x')).error).toContain(
      'multipart/form-data, text/plain or application/xml.',
    )
  })

  test.each([
    ['text/plain', new Uint8Array([0xff, 0xfe]), 400],
    ['text/plain', '', 400],
    ['text/plain; charset=utf-7', 'x', 415],
    ['application/json', 'no json', 400],
  ])('an invalid or unsupported body of %s is refused', async (type, body, status) => {
    expect((await post('notes', type, body)).status).toBe(status)
  })

  test('a JSON body on the same hook is still read as JSON', async () => {
    const { deliveryId } = await post('notes', 'application/json', '{"body":"of a field"}')
    expect(await readEvent(deliveryId)).toBe('Note: of a field')
  })
})

describe('multipart forms', () => {
  test('the payload of a form has its fields, and the name and size of its file', async () => {
    const form = new FormData()
    form.append('body', 'hello')
    form.append('author', 'Ada')
    form.append('author', 'Grace')
    form.append('file', new Blob(['12345'], { type: 'text/plain' }), 'log ü.txt')
    const { status, deliveryId } = await post('json', undefined, form)
    expect(status).toBe(200)
    expect(await readEvent(deliveryId)).toBe('hello ["Ada","Grace"] log ü.txt 5')
  })

  test('the payload of a form with a field "payload" is the JSON in that field', async () => {
    const form = new FormData()
    form.append('payload', '{"author":"Ada"}')
    const { deliveryId } = await post('json', undefined, form)
    expect(await readEvent(deliveryId)).toBe(' Ada  ')
  })

  const toPart = (name: string) => `--x\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n1\r\n`
  test.each([
    ['multipart/form-data; boundary=x', '--x\r\nContent-Disp', 'The body is not a complete multipart form.'],
    ['multipart/form-data', `${toPart('a')}--x--\r\n`, 'The body is not a complete multipart form.'],
    ['multipart/form-data; boundary=x', `${toPart('a').repeat(1_001)}--x--\r\n`, 'The form has more than 1000 parts.'],
    [
      'multipart/form-data; note="; boundary=y"; boundary=x',
      `${toPart('a').repeat(1_001)}--x--\r\n`,
      'The form has more than 1000 parts.',
    ],
  ])('a form of %s that is incomplete or too long is answered 400', async (type, body, error) => {
    expect(await post('json', type, body)).toMatchObject({ status: 400, error })
  })

  test('a field that is not UTF-8, and names no charset, is windows-1252', async () => {
    const body = Buffer.concat([
      Buffer.from(toPart('author').slice(0, -3)),
      Buffer.from([0xe9, 0x80]),
      Buffer.from('\r\n--x--\r\n'),
    ])
    const { deliveryId } = await post('json', 'multipart/form-data; boundary=x', body)
    expect(await readEvent(deliveryId)).toBe(' é€  ')
  })

  test('a form cannot set a prototype, and the hook wake refuses forms', async () => {
    const { status, deliveryId } = await post(
      'json',
      'multipart/form-data; boundary=x',
      `${toPart('__proto__')}${toPart('author')}--x--\r\n`,
    )
    expect(status).toBe(200)
    expect(await readEvent(deliveryId)).toBe(' 1  ')
    const form = new FormData()
    form.append('text', 'hello')
    expect((await post('wake', undefined, form)).status).toBe(415)
  })
})
