// What a new user meets: many webhooks, the defaults, and a model that answers at once. Each run ends soon, and no prompt grows.
import { expect, test } from 'vitest'
import { chatCompletions } from '../e2e/fakes/chat-completions.ts'
import { apiKey, type FakeProvider, replyWith, startFakeProvider } from '../e2e/fakes/provider.ts'
import type { Received } from '../e2e/fakes/loopback.ts'
import { type Gateway, hookToken, post, startGateway } from '../e2e/gateway.ts'
import { readStore } from '../e2e/inside.ts'

/** Heartbeats are at least ten seconds apart, and each one shows some thirty events. */
const patience = { timeout: 600_000, interval: 1_000 }

type Prompt = { readonly prompt: string; readonly bytes: number; readonly isHeartbeat: boolean }

function readPrompt({ body }: Pick<Received, 'body'>): Prompt {
  // as: the fake parses each body, and only the texts are read
  const { messages } = chatCompletions.body.parse(body) as { messages: { content: string }[] }
  const prompt = messages.at(-1)?.content ?? ''
  const bytes = messages.reduce((sum, { content }) => sum + Buffer.byteLength(content), 0)
  return { prompt, bytes, isHeartbeat: prompt.includes('This is a heartbeat.') }
}

const readPrompts = ({ received }: FakeProvider) =>
  received.filter(({ method }) => method === 'POST').map((request) => readPrompt(request))

/** A gateway with the keys that are given, and a model: a run says which event it looked at, a heartbeat says what is new. */
async function start(hooks: object) {
  const fake = await startFakeProvider(chatCompletions)
  fake.answer = (api, request, response) => {
    const { prompt, isHeartbeat } = readPrompt(request)
    const text = isHeartbeat
      ? `News for you. ${'The builds of the day are green, and nobody has to do anything. '.repeat(5)}`
      : `Looked at ${/event-\d+\./.exec(prompt)?.[0] ?? 'nothing'}`
    replyWith(text)(api, request, response)
  }
  const gateway = await startGateway({
    config: {
      hooks,
      models: { providers: { mine: { kind: chatCompletions.kind, baseUrl: fake.baseUrl, apiKey } } },
      agents: { defaults: { model: `mine/${chatCompletions.model}` } },
    },
  })
  return { fake, gateway }
}

/** Posts in order, several at a time. */
async function postAll(
  gateway: Gateway,
  count: number,
  toRequest: (n: number) => readonly [hook: string, body: object],
) {
  for (let n = 0; n < count; n += 20) {
    const answers = Array.from({ length: Math.min(20, count - n) }, (_, at) => post(gateway, ...toRequest(n + at)))
    for (const answer of await Promise.all(answers)) expect(answer).toMatchObject({ ok: true })
  }
}

const countJobs = ({ dir }: Gateway) => readStore(dir, async (store) => (await store.counts()).jobs)
const readHolds = ({ dir }: Gateway) => readStore(dir, (store) => store.holds())

/** One request of four, each to another hook of the interface. Three of four are runs. */
function toPost(n: number): readonly [hook: string, body: object] {
  const name = `event-${n}.`
  const mail = { id: name, from: 'a@example.com', subject: name, snippet: '', body: '' }
  if (n % 4 === 0) return ['wake', { text: name }]
  if (n % 4 === 1) return ['agent', { message: name, name: 'CI' }]
  return n % 4 === 2 ? ['gmail', { messages: [mail] }] : ['build', { build: { name } }]
}

test('1,000 posts with the five keys that the documentation of the interface recommends: each run ends, and none waits for a limit', async () => {
  const { fake, gateway } = await start({
    enabled: true,
    token: hookToken,
    defaultSessionKey: 'hook:ingress',
    allowRequestSessionKey: false,
    allowedSessionKeyPrefixes: ['hook:'],
    presets: ['gmail'],
    mappings: [{ match: { path: 'build' }, messageTemplate: 'Build {{build.name}}' }],
  })
  await postAll(gateway, 1_000, toPost)
  const asked = () => readPrompts(fake).filter(({ isHeartbeat }) => !isHeartbeat)
  await expect
    .poll(async () => {
      expect(await readHolds(gateway)).toEqual([])
      const { queued, running } = await countJobs(gateway)
      return asked().length < 750 ? [asked().length, 'runs'] : [queued, running]
    }, patience)
    .toEqual([0, 0])
  const names = asked().map(({ prompt }) => /event-(\d+)\./.exec(prompt)?.[1])
  expect(new Set(names).size).toBe(750)
  expect(names).toHaveLength(750)
  const { done, ...others } = await countJobs(gateway)
  expect(Object.values(others).every((count) => count === 0)).toBe(true)
  expect(done).toBeGreaterThanOrEqual(1_000)
  expect(await gateway.stop()).toBe(0)
  fake.close()
}, 700_000)

test('500 webhooks with the defaults: each summary is heard in exactly one heartbeat, and no heartbeat has more than 16 kB', async () => {
  const { fake, gateway } = await start({
    mappings: [{ match: { path: 'build' }, name: 'CI', messageTemplate: 'Build {{build.name}}' }],
  })
  await postAll(gateway, 500, (n) => ['build', { build: { name: `event-${n}.` } }])
  const beats = () => readPrompts(fake).filter(({ isHeartbeat }) => isHeartbeat)
  const listHeard = () =>
    beats().flatMap(({ prompt }) => Array.from(prompt.matchAll(/Looked at event-(\d+)\./g), ([, n]) => Number(n)))
  await expect.poll(() => listHeard().length, patience).toBeGreaterThanOrEqual(500)
  expect(listHeard().toSorted((a, b) => a - b)).toEqual(Array.from({ length: 500 }, (_, n) => n))
  expect(Math.max(...beats().map(({ bytes }) => bytes))).toBeLessThanOrEqual(16_000)
  expect(beats().at(-1)?.prompt).toMatch(/^Earlier messages of this session are left out\.\n/)
  expect(await gateway.stop()).toBe(0)
  fake.close()
}, 700_000)
