// JSON that its sender declares as a form, as curl and others do by default, and a form that a template does not expect.
import { execFile } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { hookToken } from './gateway.ts'
import { type Inside, readStore, startInside } from './inside.ts'

const run = promisify(execFile)
const wake = { action: 'wake', wakeMode: 'next-heartbeat' } as const
const secret = 'signed-secret-0123456789abcdef'
const verify = { scheme: 'generic-hmac', secret, header: 'x-sum' } as const
const textTemplate = '{{service}} {{version}} went to production'
const mappings = [
  { id: 'deploy', match: { path: 'deploy' }, ...wake, textTemplate },
  { id: 'signed', match: { path: 'signed' }, ...wake, textTemplate, verify },
  { id: 'code', match: { path: 'code' }, ...wake, transform: { module: 'service.js' } },
  { id: 'items', match: { path: 'items' }, ...wake, forEach: 'list', textTemplate: 'Item {{list[0].id}} {{note}}' },
  { id: 'some', match: { path: 'some' }, ...wake, textTemplate: '{{service | default: "?"}} {{version}} is out' },
  { id: 'optional', match: { path: 'optional' }, ...wake, textTemplate: 'By {{author | default: "?"}} at {{now}}' },
]
const module = 'export default ({ payload }) => ({ text: `${payload.service} from code` })'
const body = '{"service":"billing & co","version":"1.4.2"}'
const sentence = 'billing & co 1.4.2 went to production'

let gateway: Inside
const warnings: string[] = []

beforeAll(async () => {
  const log = {
    debug: () => {},
    info: () => {},
    error: () => {},
    warn: (_: object, text: string) => warnings.push(text),
  }
  gateway = await startInside({
    config: { hooks: { mappings } },
    files: { 'hooks/transforms/service.js': module },
    log,
  })
})

const Reply = z.looseObject({ ok: z.boolean(), deliveryId: z.string().optional(), error: z.string().optional() })

async function post(name: string, text: string | Uint8Array, type = 'application/x-www-form-urlencoded', more = {}) {
  const headers = { authorization: `Bearer ${hookToken}`, 'content-type': type, ...more }
  const reply = await fetch(`${gateway.url}/${name}`, { method: 'POST', headers, body: text })
  return { status: reply.status, ...Reply.parse(await reply.json()) }
}

async function readText(deliveryId: string | undefined) {
  const events = await readStore(gateway.dir, (store) => store.events({ limit: 1_000 }))
  return events.find((event) => event.deliveryId === deliveryId)?.text
}

async function readLog(deliveryId: string | undefined) {
  return (await readStore(gateway.dir, (store) => store.delivery(deliveryId ?? '')))?.log
}

const python = `
import sys, urllib.request
request = urllib.request.Request(sys.argv[1], sys.argv[3].encode(), {'Authorization': 'Bearer ' + sys.argv[2]})
print(urllib.request.urlopen(request).read().decode())`

const clients: readonly [string, (url: string) => readonly string[]][] = [
  ['curl', (url) => ['curl', '-sS', url, '-H', `Authorization: Bearer ${hookToken}`, '-d', body]],
  ['python3', (url) => ['python3', '-c', python, url, hookToken, body]],
  ['wget', (url) => ['wget', '-qO-', `--header=Authorization: Bearer ${hookToken}`, `--post-data=${body}`, url]],
]

describe('JSON that is declared as a form', () => {
  test.each(clients)('%s without a content type sends JSON', async (name, toCommand) => {
    const [file = name, ...args] = toCommand(`${gateway.url}/deploy`)
    const found = await run(file, args).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined
      throw error
    })
    // this machine does not have the program
    if (found === undefined) return
    expect(await readText(Reply.parse(JSON.parse(found.stdout)).deliveryId)).toBe(sentence)
  })

  test('a transform and a signed mapping get the JSON too', async () => {
    const { deliveryId } = await post('code', body)
    expect(await readText(deliveryId)).toBe('billing & co from code')
    const sum = createHmac('sha256', secret).update(body).digest('hex')
    const signed = await post('signed', body, undefined, { authorization: '', 'x-sum': sum })
    expect(await readText(signed.deliveryId)).toBe(sentence)
  })

  test('the hooks wake and agent take it, and refuse a real form with what to send', async () => {
    expect(await post('wake', '{"text":"disk","mode":"next-heartbeat"}')).toMatchObject({ status: 200 })
    expect(await post('agent', '{"message":"look"}')).toMatchObject({ status: 200 })
    for (const name of ['wake', 'agent']) {
      expect(await post(name, 'text=disk&message=look')).toMatchObject({
        status: 415,
        error:
          'The content type must be application/json: this hook takes no forms. Send the fields as one JSON object.',
      })
    }
    expect(await post('wake', '{"text":"disk",}')).toMatchObject({
      status: 400,
      error: expect.stringContaining('character 16'),
    })
  })
})

describe('a template whose fields are all empty', () => {
  test('is told in the record and in the log, with the fields that it reads and without a word of the form', async () => {
    warnings.length = 0
    const { status, deliveryId } = await post('deploy', 'canary=1&service=')
    expect(status).toBe(200)
    const line = 'The form has none of the fields that textTemplate reads, or they are empty: service, version.'
    expect(await readLog(deliveryId)).toEqual([line])
    expect(warnings).toEqual([`deploy: ${line}`])
  })

  test('is told for JSON, and for items that all lack the fields', async () => {
    const line = (fields: string) =>
      `The payload has none of the fields that textTemplate reads, or they are empty: ${fields}.`
    const json = await post('deploy', '{"name":"billing"}', 'application/json')
    expect(await readLog(json.deliveryId)).toEqual([line('service, version')])
    const items = await post('items', '{"list":[{},{"x":1}]}', 'application/json')
    expect(await readLog(items.deliveryId)).toEqual([line('list[0].id, note')])
  })

  test('is not told if one field has a value, or if all have a default', async () => {
    for (const [name, text] of [
      ['deploy', '{"version":0}'],
      ['some', '{"service":"x"}'],
      ['items', '{"list":[{},{"id":1}]}'],
      ['optional', '{}'],
    ] as const) {
      const { deliveryId } = await post(name, text, 'application/json')
      expect(await readLog(deliveryId)).toEqual([])
    }
    const { deliveryId } = await post('some', '{}', 'application/json')
    expect(await readLog(deliveryId)).toHaveLength(1)
  })
})
