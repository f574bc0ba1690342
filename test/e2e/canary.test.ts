// Sends marked secrets and payloads down every path: they appear where they belong, and nowhere else.
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { openDatabase } from '../../src/store/sqlite/driver.ts'
import { drain } from './aftermath.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { exchange, type Headers, type Reply, send, toRequest } from './wire.ts'

const secrets = {
  hookToken: 'canary-hook-token-6c1f0a9b7d',
  gatewayToken: 'canary-gateway-token-93b2e8d410',
  env: 'canary-env-5d0b7be2f3',
  cookie: 'canary-cookie-0f93ac7715',
  proxy: 'canary-proxy-a47c2210be',
  guess: 'canary-guess-71d9e6f0c4',
  query: 'canary-query-28c5b1da96',
}
/** Marks payload text. The text after the mark names the path of the payload through the gateway. */
const mark = 'canary-payload-e19f34'
const buildMarkedText = (path: string) => `${mark}-${path}.`

const transforms = {
  'throws.ts': 'export default ({ payload }) => { throw new Error(JSON.stringify(payload)) }',
  'throws-text.ts': 'export default ({ payload }) => { throw JSON.stringify(payload) }',
  'throws-name.ts':
    'export default ({ payload }) => { const e = new Error("x"); e.name = payload.text; e.code = payload.text; throw e }',
  'throws-cause.ts': 'export default ({ payload }) => { throw new TypeError("x", { cause: new Error(payload.text) }) }',
  'rejects.ts': 'export default async ({ payload }) => Promise.reject(new Error(payload.text))',
  'forgets.ts':
    'export default ({ payload }) => { void Promise.reject(new Error(payload.text)); return { message: "fine" } }',
  'nonsense.ts':
    'export default ({ payload }) => ({ [payload.text]: payload.text, message: 1, sessionKey: payload.text })',
  'looks-around.ts':
    'export default ({ headers, url, query }) => ({ message: JSON.stringify([headers, url, query, process.env]) })',
  'half.ts': 'export default ({',
}

const config = {
  gateway: { token: '${CANARY_GATEWAY}' },
  channels: { slack: { botToken: 'none' } },
  // a heartbeat would copy the events into the transcript of the main session
  agents: { defaults: { heartbeat: { every: 0 } } },
  hooks: {
    token: '${CANARY_HOOK}',
    transforms: { timeoutMs: 500 },
    mappings: [
      ...Object.keys(transforms).map((module) => ({
        id: module,
        match: { path: module.replace('.ts', '') },
        transform: { module },
        deliver: false,
      })),
      { id: 'gone', match: { path: 'gone' }, transform: { module: 'gone.ts' } },
      { id: 'only', match: { path: 'only', payload: { text: 'something else' }, headers: { 'x-kind': 'y' } } },
      { id: 'unused', match: { path: 'unused' }, messageTemplate: 'nothing of it', deliver: false },
      { id: 'used', match: { path: 'used' }, messageTemplate: '{{text}} {{headers.cookie}}', deliver: false },
      { id: 'unsendable', match: { path: 'unsendable' }, messageTemplate: '{{text}}', channel: 'slack', to: '?' },
    ],
  },
}
const files = {
  '.env': `CANARY_HOOK=${secrets.hookToken}\nCANARY_GATEWAY=${secrets.gatewayToken}\nCANARY_UNUSED=${secrets.env}\n`,
  ...Object.fromEntries(Object.entries(transforms).map(([name, code]) => [`hooks/transforms/${name}`, code])),
}

const credentials: Headers = [
  ['authorization', `Bearer ${secrets.hookToken}`],
  ['x-service-token', secrets.hookToken],
  ['cookie', `session=${secrets.cookie}`],
  ['proxy-authorization', `Basic ${secrets.proxy}`],
]
const json: Headers = [['content-type', 'application/json']]

const answers: Reply[] = []
const pages: string[] = []
let printed = ''
let dir = ''

/** The columns of the store that contain a text, as `table.column`. */
function findInStore(text: string): string[] {
  const db = openDatabase(join(dir, 'state/hookloom.db'), { readOnly: true, busyMs: 2_000 })
  try {
    const tables = db.all("SELECT name FROM sqlite_master WHERE type = 'table'").map(({ name }) => String(name))
    return tables.flatMap((table) => {
      const columns = db.all(`PRAGMA table_info(${table})`).map(({ name }) => String(name))
      const holds = (column: string) =>
        db.get(`SELECT 1 FROM ${table} WHERE instr(CAST(${column} AS TEXT), ?) > 0 LIMIT 1`, text) !== undefined
      return columns.filter(holds).map((column) => `${table}.${column}`)
    })
  } finally {
    db.close()
  }
}

async function sendEverything({ url }: Gateway): Promise<void> {
  const port = Number(new URL(url).port)
  const post = async (target: string, body: string, headers: Headers = [...credentials, ...json]) => {
    answers.push(await send(port, { target, headers, body }))
  }
  const buildBody = (path: string, more: object = {}) => JSON.stringify({ text: buildMarkedText(path), ...more })
  const bare = credentials.slice(2)

  for (const name of [...Object.keys(transforms), 'gone', 'only', 'unused', 'used', 'unsendable']) {
    const path = name.replace('.ts', '')
    await post(`/hooks/${path}`, buildBody(path))
  }
  await post('/hooks/wake', buildBody('wake'))
  await post('/hooks/wake', buildBody('wake-twin'), [...credentials, ...json, ['idempotency-key', 'twin']])
  await post('/hooks/wake', buildBody('wake-other'), [...credentials, ...json, ['idempotency-key', 'twin']])
  await post('/hooks/agent', JSON.stringify({ message: buildMarkedText('agent'), deliver: false }))
  for (const field of ['sessionKey', 'channel', 'thinking', 'wakeMode']) {
    await post('/hooks/agent', JSON.stringify({ message: buildMarkedText('field'), [field]: buildMarkedText('field') }))
  }
  await post('/hooks/agent', JSON.stringify({ message: { [buildMarkedText('key')]: 1 }, [buildMarkedText('key')]: 1 }))
  await post('/hooks/wake', `{"text":"${buildMarkedText('syntax')}`)
  await post('/hooks/wake', `${buildMarkedText('syntax')}`)
  await post('/hooks/wake', buildBody('type'), [...credentials, ['content-type', `text/${mark}`]])
  await post('/hooks/wake', buildBody('encoding'), [...credentials, ...json, ['content-encoding', mark]])
  await post('/hooks/wake', buildBody('gzip'), [...credentials, ...json, ['content-encoding', 'gzip']])
  await post('/hooks/wake', buildBody('large', { more: 'x'.repeat(300_000) }))
  await post('/hooks/wake', buildBody('key'), [...credentials, ...json, ['idempotency-key', mark.repeat(20)]])
  await post('/hooks/nobody', buildBody('nobody'))
  await post('/elsewhere', buildBody('elsewhere'))
  await post(`/hooks/wake?token=${secrets.query}`, buildBody('query'))
  await post('/hooks/wake', buildBody('guess'), [...json, ...bare, ['authorization', `Bearer ${secrets.guess}`]])
  await post('/hooks/wake', buildBody('guess'), [...json, ...bare, ['x-service-token', secrets.guess]])
  await post('/hooks/wake', buildBody('twice'), [...json, ...credentials, ['authorization', `Bearer ${secrets.guess}`]])
  const cut = toRequest({ target: '/hooks/wake', headers: [...credentials, ['content-length', 'x']], length: false })
  answers.push(
    ...(await exchange(port, Buffer.concat([cut, Buffer.from(buildBody('malformed'))]), { until: 'all' })).replies,
  )
}

async function readAdmin({ adminUrl }: Gateway): Promise<void> {
  for (const page of ['healthz', 'readyz', 'metrics', 'api/refusals', 'api/nothing']) {
    for (const token of [secrets.gatewayToken, secrets.guess]) {
      const response = await fetch(`${adminUrl}/${page}`, { headers: { authorization: `Bearer ${token}` } })
      pages.push(`${page} ${JSON.stringify([...response.headers])} ${await response.text()}`)
    }
  }
}

beforeAll(async () => {
  const first = await startGateway({ config, files })
  dir = first.dir
  await sendEverything(first)
  await readAdmin(first)
  await first.kill()
  const second = await startGateway({ dir })
  await drain(dir)
  await readAdmin(second)
  await second.stop()
  printed = first.output() + second.output()
})

const listOutputs = () => [printed, ...pages, ...answers.map(({ headers, body }) => JSON.stringify(headers) + body)]

describe('secrets', () => {
  test.each(Object.entries(secrets))('the secret %s is not printed, not answered and not stored', (_, secret) => {
    expect(listOutputs().filter((text) => text.includes(secret))).toEqual([])
    expect(findInStore(secret)).toEqual([])
  })

  test('no transform and no template sees a credential header or the environment of the gateway', () => {
    expect(findInStore('content-type')).toContain('deliveries.plan')
    for (const name of ['authorization', 'x-service-token', 'cookie', 'CANARY_']) {
      expect(findInStore(`"${name}`)).toEqual([])
    }
  })
})

describe('texts of payloads', () => {
  test('text from a payload is not printed, and is in no answer, refusal or page', () => {
    expect(listOutputs().filter((text) => text.includes(mark))).toEqual([])
  })

  test('the requests of this file have every kind of outcome', () => {
    const statuses = new Set(answers.map(({ status }) => status))
    expect([...statuses].toSorted()).toEqual([200, 204, 400, 401, 404, 413, 415])
    expect(printed.match(/"msg":"listening"/g)).toHaveLength(2)
    expect(pages.join('\n')).toMatch(/"degraded":true/)
    expect(pages.join('\n')).toMatch(/"code":"payload-invalid"/)
  })

  test.each(['field', 'key', 'syntax', 'type', 'encoding', 'gzip', 'large', 'nobody', 'query', 'guess', 'malformed'])(
    'text from a refused request (%s) is not stored',
    (path) => {
      expect(findInStore(buildMarkedText(path))).toEqual([])
    },
  )

  test.each(['only', 'unused', 'wake-other'])('text that no action uses (%s) is not stored', (path) => {
    expect(findInStore(buildMarkedText(path))).toEqual([])
  })

  test('the text of an action is stored only with the action and its effects', () => {
    expect(findInStore(buildMarkedText('wake')).toSorted()).toEqual(['deliveries.plan'])
    for (const path of ['agent', 'used']) {
      const found = ['deliveries.plan', 'events.text', 'jobs.steps', 'messages.text']
      expect(findInStore(buildMarkedText(path)).toSorted()).toEqual(found)
    }
  })

  test.each(['throws', 'throws-text', 'throws-name', 'throws-cause', 'rejects', 'nonsense', 'half', 'gone'])(
    'text from a parked delivery (%s) is stored only in its body and in the messages of its code',
    (path) => {
      const found = findInStore(buildMarkedText(path))
      expect(found).toContain('deliveries.body')
      expect(found.filter((column) => column !== 'deliveries.body' && column !== 'deliveries.problem')).toEqual([])
    },
  )
})
