// Each recipe works beyond its first hour: as printed, for thirty requests. Only addresses, times and the runner of the agent are others.
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { parse } from 'jsonc-parser'
import { expect, test, vi } from 'vitest'
import { BudgetConfig, findPeriod } from '../../src/model/budgets.ts'
import { onFileEnd } from '../file-end.ts'
import { readBlock, readBlocks } from '../pages.ts'
import { drain } from './aftermath.ts'
import { githubApiToken, startFakeGitHub } from './fakes/github.ts'
import { openai } from './fakes/openai.ts'
import { apiKey, replyWith, startFakeProvider } from './fakes/provider.ts'
import { makeFolder } from './gateway.ts'
import { type Inside, readStore, startInside } from './inside.ts'
import { post } from './wire.ts'

type Fields = Record<string, unknown>
type Recipe = Record<string, object> & { readonly hooks: { readonly mappings: readonly Fields[] } }

const page = 'src/cli/recipes/README.md'
const readRecipe = (mark: string) => parse(readBlock(page, 'jsonc', mark)) as Recipe
const times = Array.from({ length: 30 }, (_, n) => n)
const quiet = { defaults: { runner: 'echo', heartbeat: { every: 0 } } }

async function countStates({ dir }: Inside): Promise<Record<string, number>> {
  const records = await readStore(dir, (store) => store.deliveries({ limit: 9_999 }))
  const states = records.flatMap(({ state, jobs }) => (jobs.length === 0 ? [state] : jobs.map((job) => job.state)))
  return Object.fromEntries(
    [...new Set(states)].toSorted().map((state) => [state, states.filter((s) => s === state).length]),
  )
}

async function send({ port }: Inside, target: string, payload: object): Promise<number> {
  const { status } = await post(port, `/hooks/${target}`, payload)
  return status
}

test('every recipe of the page has a test here', () => {
  const sections = readBlocks(page).filter(({ language }) => language === 'jsonc')
  expect(sections.map(({ section }) => section)).toEqual([
    'One review per pull request',
    'Answer at the pull request',
    'At most two per customer',
    'At most $20 a day',
    'A sender with only a URL',
    'A laptop without an address',
    'In front of kagent, Dust, background-agents or Claude routines',
  ])
})

test(
  'thirty pushes to three pull requests are three reviews, after the quiet period',
  { timeout: 120_000 },
  async () => {
    let moved = 0
    const gateway = await startInside({
      config: { ...readRecipe('"id": "reviews"'), agents: quiet },
      clock: () => Date.now() + moved,
    })
    const push = (id: number, n: number) => {
      const pullRequest = { id, html_url: `https://github.test/${id}`, head: { sha: `sha-${n}` } }
      return send(gateway, 'review', { action: 'synchronize', pull_request: pullRequest })
    }
    for (const n of times) expect(await push(n % 3, n)).toBe(200)
    await vi.waitFor(async () => expect(await countStates(gateway)).toEqual({ queued: 3, superseded: 27 }))
    moved += 31_000
    // a push to another pull request makes the gateway look at its clock
    expect(await push(9, 99)).toBe(200)
    await expect.poll(async () => (await countStates(gateway))['done'], { timeout: 60_000 }).toBeGreaterThanOrEqual(3)
    expect(await countStates(gateway)).toMatchObject({ superseded: 27 })
  },
)

test('thirty pull requests get thirty comments and thirty statuses', { timeout: 120_000 }, async () => {
  const secret = 'a-secret-of-the-webhook'
  const toSha = (n: number) => String(n).padStart(40, '1')
  const fake = await startFakeGitHub({
    issues: times.map((n) => `acme/app#${n + 1}`),
    commits: times.map((n) => `acme/app@${toSha(n)}`),
  })
  const recipe = readRecipe('"id": "verdicts"')
  const reviewer = { kind: 'command', command: 'sh', args: ['-c', 'cat >/dev/null; echo Small.; echo pass'] }
  const gateway = await startInside({
    config: {
      ...recipe,
      channels: { github: { ...Object(recipe['channels'])['github'], baseUrl: fake.url } },
      agents: { defaults: { runner: 'reviewer', heartbeat: { every: 0 } } },
      runners: { reviewer },
    },
    env: { GITHUB_TOKEN: githubApiToken, GITHUB_WEBHOOK_SECRET: secret },
  })
  for (const n of times) {
    const pullRequest = {
      id: n,
      number: n + 1,
      title: 'T',
      html_url: `https://github.test/${n}`,
      head: { sha: toSha(n) },
    }
    const body = JSON.stringify({ action: 'opened', repository: { full_name: 'acme/app' }, pull_request: pullRequest })
    const headers = {
      'content-type': 'application/json',
      'x-github-event': 'pull_request',
      'x-github-delivery': `delivery-${n}`,
      'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
    }
    expect((await fetch(`${gateway.url}/verdict`, { method: 'POST', headers, body })).status).toBe(200)
  }
  await drain(gateway.dir)
  expect(new Set(fake.comments.map(({ issue }) => issue)).size).toBe(30)
  expect(fake.comments).toHaveLength(30)
  expect(fake.statuses.filter(({ state }) => state === 'success')).toHaveLength(30)
})

test('thirty tickets of three customers are thirty turns, and never more than two of one customer at once', async () => {
  const file = join(makeFolder(), 'turns')
  // the first turn of a customer goes on until a second one has started, for 10 s at most: a busy machine starts them far apart
  const turn = `k=$(grep -o 'customer [0-9]' | head -1); echo "1 $k" >>${file}
    for i in $(seq 200); do [ "$(grep -c "^1 $k" ${file})" -gt 1 ] && break; sleep 0.05; done
    sleep 0.2; echo "-1 $k" >>${file}; echo ok`
  const gateway = await startInside({
    config: {
      ...readRecipe('"id": "tickets"'),
      agents: { defaults: { runner: 'desk', heartbeat: { every: 0 } } },
      runners: { desk: { kind: 'command', command: 'sh', args: ['-c', turn] } },
    },
  })
  // ten of one customer come first, so that a third turn of his would find a free place
  const toCustomer = (n: number) => Math.floor(n / 10)
  const ask = (n: number) =>
    send(gateway, 'ticket', { subject: `customer ${toCustomer(n)}, no ${n}`, customer: { id: toCustomer(n) } })
  expect(new Set(await Promise.all(times.map(ask)))).toEqual(new Set([200]))
  await expect.poll(() => countStates(gateway), { timeout: 60_000 }).toEqual({ done: 30 })
  const running: Record<string, number> = {}
  let most = 0
  for (const line of readFileSync(file, 'utf8').trim().split('\n')) {
    const [change = '', customer = ''] = line.split(' customer ')
    running[customer] = (running[customer] ?? 0) + Number(change)
    most = Math.max(most, running[customer] ?? 0)
  }
  expect([running, most]).toEqual([{ 0: 0, 1: 0, 2: 0 }, 2])
})

test('thirty turns fit into 20 dollars a day, each counted at its price', async () => {
  const fake = await startFakeProvider(openai)
  fake.answer = replyWith('It boils.')
  const recipe = readRecipe('"daily"')
  const providers = Object(recipe['models'])['providers'] as { openai: object }
  const gateway = await startInside({
    env: { OPENAI_API_KEY: apiKey },
    config: {
      ...recipe,
      models: { providers: { openai: { ...providers.openai, baseUrl: fake.baseUrl } } },
      hooks: { mappings: [{ match: { path: 'ask' }, messageTemplate: '{{text}}', wakeMode: 'next-heartbeat' }] },
    },
  })
  for (const n of times) expect(await send(gateway, 'ask', { text: `no ${n}` })).toBe(200)
  await expect.poll(() => countStates(gateway), { timeout: 60_000 }).toEqual({ done: 30 })
  const { daily } = recipe['budgets'] as { daily: object }
  const { startsAt } = findPeriod(BudgetConfig.parse(daily), Date.now())
  const [account] = await readStore(gateway.dir, (store) => store.accounts([{ name: 'daily', startsAt }]))
  // 11 tokens for $0.25 a million, and 7 for $2 a million, in billionths of a dollar
  expect(account).toMatchObject({ spent: { nanos: 30 * (11 * 250 + 7 * 2_000), turns: 30 } })
  fake.close()
})

test('thirty requests with the secret in their URL are turns, and no record has the secret', async () => {
  const secret = '5b0f6a3d9c2e4f718a6b3c0d1e2f4a59'
  const gateway = await startInside({
    config: { ...readRecipe('"url-secret"'), agents: quiet },
    env: { PLEX_SECRET: secret },
  })
  const play = (key: string, n: number) => {
    const body = JSON.stringify({ Account: { title: 'Ada' }, Metadata: { title: `Episode ${n}` } })
    const headers = { 'content-type': 'application/json' }
    return fetch(`${gateway.url}/plex/${key}`, { method: 'POST', headers, body })
  }
  for (const n of times) expect((await play(secret, n)).status).toBe(200)
  expect((await play(`${secret}0`, 0)).status).toBe(401)
  await expect.poll(() => countStates(gateway), { timeout: 60_000 }).toEqual({ done: 30 })
  const records = await readStore(gateway.dir, (store) => store.deliveries({ limit: 99 }))
  expect(JSON.stringify(records)).not.toContain(secret)
})

test('thirty messages through a tunnel are turns, while a stranger who guesses is locked out', async () => {
  const recipe = readRecipe('trustedProxies')
  const secret = 'twilio-auth-token-0123456789'
  const gateway = await startInside({ config: { ...recipe, agents: quiet }, env: { TWILIO_AUTH_TOKEN: secret } })
  const { publicUrl } = Object(recipe.hooks.mappings[0])['verify'] as { publicUrl: string }
  const text = async (n: number) => {
    const signed = `${publicUrl}/hooks/twilioBodyno ${n}From+1555`
    const headers = {
      'x-forwarded-for': '198.51.100.7',
      'x-twilio-signature': createHmac('sha1', secret).update(signed).digest('base64'),
    }
    const body = new URLSearchParams({ From: '+1555', Body: `no ${n}` })
    return (await fetch(`${gateway.url}/twilio`, { method: 'POST', headers, body })).status
  }
  const guess = async () => {
    const headers = { 'x-forwarded-for': '203.0.113.9', authorization: 'Bearer guess' }
    return (await fetch(`${gateway.url}/wake`, { method: 'POST', headers })).status
  }
  for (const n of times) expect([await guess(), await text(n)]).toEqual([n < 20 ? 401 : 429, 200])
  await expect.poll(() => countStates(gateway), { timeout: 60_000 }).toEqual({ done: 30 })
})

type Got = { url: string; headers: NodeJS.Dict<string | string[]>; body: Fields }

/** A server that accepts everything, and what it got. */
async function startAgent(): Promise<{ got: Got[]; origin: string }> {
  const got: Got[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk: Buffer) => (text += chunk.toString()))
    request.on('end', () => {
      got.push({ url: request.url ?? '', headers: request.headers, body: JSON.parse(text) as Fields })
      response.end('{}')
    })
  })
  onFileEnd(() => void server.close())
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return { got, origin: `http://127.0.0.1:${Object(server.address())['port']}` }
}

/** What the documentation of each agent asks for: its path, its headers, and where the prompt is. */
const agents: Readonly<Record<string, { path: string; headers: object; readPrompt: (body: never) => string }>> = {
  kagent: {
    path: '/agents/kagent/assistant',
    headers: {},
    readPrompt: (body: { method: 'SendMessage'; params: { message: { role: string; parts: { text: string }[] } } }) =>
      body.method === 'SendMessage' && body.params.message.role === 'ROLE_USER'
        ? (body.params.message.parts[0]?.text ?? '')
        : '',
  },
  dust: {
    path: '/api/v1/w/%3Cworkspace%3E/assistant/conversations',
    headers: { authorization: 'Bearer key' },
    readPrompt: (body: { message: { content: string; mentions: object[] } }) =>
      body.message.mentions.length === 1 ? body.message.content : '',
  },
  'background-agents': {
    path: '/webhooks/automation/%3Cautomation%3E',
    headers: { authorization: 'Bearer key' },
    readPrompt: (body: { request: string; idempotencyKey: string }) => (body.idempotencyKey === '' ? '' : body.request),
  },
  routine: {
    path: '/v1/claude_code/routines/%3Croutine%3E/fire',
    headers: { authorization: 'Bearer key', 'anthropic-beta': 'experimental-cc-routine-2026-04-01' },
    readPrompt: (body: { text: string }) => body.text,
  },
}

test.each(Object.keys(agents))('thirty requests reach %s, each once, with the message in its place', async (name) => {
  const { got, origin } = await startAgent()
  const text = readBlock(page, 'jsonc', '"http-agent"')
    .replaceAll(/https?:\/\/[^/"]+/g, origin)
    .replace('"runner": "routine"', `"runner": "${name}"`)
  const env = { DUST_API_KEY: 'key', AUTOMATION_KEY: 'key', ROUTINE_TOKEN: 'key' }
  const files = { 'hooks/plugins/http-agent.ts': readBlock(page, 'ts', 'defineRunner') }
  const gateway = await startInside({ config: parse(text) as object, files, env })
  for (const n of times) expect(await send(gateway, 'failed', { job: `job ${n}`, url: 'https://ci.test' })).toBe(200)
  await expect.poll(() => countStates(gateway), { timeout: 60_000 }).toEqual({ done: 30 })
  const { path, headers, readPrompt } = agents[name] ?? expect.fail()
  for (const { url, headers: sent } of got) expect([url, sent]).toMatchObject([path, headers])
  const jobs = got.map(({ body }) => /job \d+/.exec(readPrompt(body as never))?.[0])
  expect(new Set(jobs)).toEqual(new Set(times.map((n) => `job ${n}`)))
  expect(got).toHaveLength(30)
})
