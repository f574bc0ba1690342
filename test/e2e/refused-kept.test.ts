// Refused requests are kept, encrypted, and run when their cause is corrected. Nothing of them is shown before.
import { createHmac } from 'node:crypto'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { runCommand } from './command.ts'
import { gatewayToken, hookToken } from './gateway.ts'
import { type Inside, readStore, startInside } from './inside.ts'

const secret = 'the secret of the sender, new'
const formerSecret = 'the secret of the sender, old'

const buildConfig = (given: string, more: object = {}) => ({
  hooks: {
    mappings: [
      { id: 'signed', match: { path: 'github' }, verify: { scheme: 'github', secret: given }, action: 'wake' },
      { id: 'timed', match: { path: 'stripe' }, verify: { scheme: 'stripe', secret: given }, action: 'wake' },
      { id: 'plain', match: { path: 'plain' }, action: 'wake', textTemplate: '{{text}}' },
    ],
    ...more,
  },
})

const toSignature = (key: string, body: string) => `sha256=${createHmac('sha256', key).update(body).digest('hex')}`

async function post({ url }: Inside, path: string, headers: Record<string, string>, body: string) {
  const answer = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  })
  await answer.arrayBuffer()
  return { status: answer.status, requestId: answer.headers.get('x-request-id') ?? '' }
}

const push = (inside: Inside, id: string, body = `{"ref":"${id}"}`, key = secret) =>
  post(
    inside,
    '/github',
    { 'x-github-event': 'push', 'x-github-delivery': id, 'x-hub-signature-256': toSignature(key, body) },
    body,
  )

const Retried = z.object({ ran: z.number(), repeated: z.number(), stillRefused: z.number() })

async function retry({ dir }: Inside, ...more: string[]) {
  const { code, json } = await runCommand(['retry', '--refused', '--json', ...more], { dir })
  expect(code).toBe(0)
  return Retried.parse(json()[0])
}

/** Starts a gateway with the former secret, calls `refuse` with it, and starts it again with the new secret. */
async function startCorrected(
  refuse: (inside: Inside) => Promise<unknown>,
  { hooks = {}, clock = Date.now }: { hooks?: object; clock?: () => number } = {},
): Promise<Inside> {
  const before = await startInside({ config: buildConfig(formerSecret, hooks), clock })
  await refuse(before)
  await before.stop()
  const file = join(before.dir, 'hookloom.jsonc')
  writeFileSync(file, readFileSync(file, 'utf8').replaceAll(formerSecret, secret))
  return startInside({ dir: before.dir, clock })
}

const list = async ({ adminUrl }: Inside) => {
  const answer = await fetch(`${adminUrl}/api/refusals`, { headers: { authorization: `Bearer ${gatewayToken}` } })
  return Answer.parse(await answer.json()).refusals
}
const Answer = z.object({ refusals: z.array(z.looseObject({ requestId: z.string(), isKept: z.boolean() })) })

describe('requests that were refused because of a wrong secret', () => {
  test('each request refused for a wrong secret runs once when it is retried, even if the sender repeated it', async () => {
    const ids = Array.from({ length: 25 }, (_, index) => `guid-${index}`)
    const inside = await startCorrected(async (before) => {
      for (const id of ids) expect([401, 429]).toContain((await push(before, id)).status)
      // the sender repeats two of the refused requests
      for (const id of ids.slice(0, 2)) await push(before, id)
    })
    expect((await push(inside, 'guid-7')).status).toBe(200)
    expect(await retry(inside, '--dry-run')).toEqual({ ran: 26, repeated: 1, stillRefused: 0 })
    expect(await retry(inside)).toEqual({ ran: 24, repeated: 3, stillRefused: 0 })
    expect(await retry(inside)).toEqual({ ran: 0, repeated: 0, stillRefused: 0 })
    const deliveries = await readStore(inside.dir, (store) => store.deliveries({ limit: 100 }))
    expect(deliveries.filter(({ state }) => state === 'accepted')).toHaveLength(25)
  })

  test('a stored proof is checked against its time of arrival: a signature that became too old later is valid, one that was too old then is not', async () => {
    let now = Date.UTC(2026, 5, 1)
    const sign = (body: string, seconds: number) => {
      const digest = createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')
      return { 'stripe-signature': `t=${seconds},v1=${digest}` }
    }
    const send = (inside: Inside, id: string, seconds: number) => {
      const body = JSON.stringify({ id, object: 'event', type: 'invoice.paid' })
      return post(inside, '/stripe', sign(body, seconds), body)
    }
    const inside = await startCorrected(
      async (before) => {
        await send(before, 'evt_1', now / 1_000)
        await send(before, 'evt_2', now / 1_000 - 90_000 * 30)
      },
      { clock: () => now },
    )
    now += 3 * 3_600_000
    expect(await retry(inside)).toEqual({ ran: 1, repeated: 0, stillRefused: 1 })
    const [delivery] = await readStore(inside.dir, (store) => store.deliveries({ limit: 9 }))
    expect(delivery).toMatchObject({ hook: 'stripe', receivedAt: now - 3 * 3_600_000 })
  })

  test('requests refused for an outdated hook token run once each, even on a hook without verify and without delivery ids', async () => {
    const newToken = 'another-hook-token-0123456789abcdef'
    const authorization = { authorization: `Bearer ${newToken}` }
    const before = await startInside({ config: buildConfig(secret) })
    for (let n = 0; n < 22; n += 1)
      expect([401, 429]).toContain((await post(before, '/plain', authorization, '{"text":"same"}')).status)
    await post(before, '/wake', authorization, '{"text":"built-in"}')
    await post(before, '/no-such-hook', authorization, '{"text":"unknown"}')
    await post(before, '/plain', {}, '{"text":"without a credential"}')
    await post(before, '/plain', { authorization: `Bearer ${gatewayToken}` }, '{"text":"the gateway token"}')
    await before.stop()
    const file = join(before.dir, 'hookloom.jsonc')
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(hookToken, newToken))
    const inside = await startInside({ dir: before.dir })
    expect(await retry(inside)).toEqual({ ran: 23, repeated: 0, stillRefused: 0 })
    const events = await readStore(inside.dir, (store) => store.events({ limit: 100 }))
    expect(events.map(({ text }) => text)).toEqual([...Array.from({ length: 22 }, () => 'same'), 'built-in'])
  })

  test('a refusal names the delivery that it became when it was retried', async () => {
    const inside = await startInside({ config: buildConfig(formerSecret) })
    const { requestId } = await push(inside, 'guid-1')
    const other = await push(inside, 'guid-2', '{}', 'the secret of somebody else')
    const file = join(inside.dir, 'hookloom.jsonc')
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(formerSecret, secret))
    await expect.poll(() => retry(inside, '--dry-run'), { timeout: 10_000 }).toMatchObject({ ran: 1 })
    expect(await retry(inside)).toMatchObject({ ran: 1, stillRefused: 1 })
    const [delivery] = await readStore(inside.dir, (store) => store.deliveries({ limit: 9 }))
    const id = delivery?.deliveryId ?? 'none'
    const shown = await runCommand(['show', requestId], { dir: inside.dir })
    expect(shown.stdout).toMatch(new RegExp(`ran as +${id}`))
    const { stdout } = await runCommand(['list', '--refused'], { dir: inside.dir })
    expect(stdout).toMatch(new RegExp(` ${requestId.slice(0, 8)} +ran `))
    expect(stdout).toMatch(new RegExp(` ${other.requestId.slice(0, 8)} +yes `))
    expect((await list(inside)).map(({ ranAs }) => ranAs)).toEqual([id, undefined])
  })

  test('a request that is still refused is kept with its new reason, and drop --refused deletes it', async () => {
    const another = 'the secret of somebody else'
    const inside = await startCorrected(async (before) => {
      await push(before, 'guid-1', '{}', another)
      await push(before, 'guid-2')
    })
    const { stdout } = await runCommand(['retry', '--refused', '--hook', 'github'], { dir: inside.dir })
    expect(stdout).toBe(
      '1 ran, 0 repeat deliveries that are there already, 1 stays refused.\n' +
        '  1 × signed: No signature matches: the sender uses another secret, or the body was changed on the way.\n',
    )
    const [kept, ...others] = await list(inside)
    expect([kept?.isKept, others]).toEqual([true, []])
    const shown = await runCommand(['show', kept?.requestId ?? ''], { dir: inside.dir })
    expect(shown.stdout).toMatch(/kept +encrypted\. When the cause .* "hookloom retry --refused --hook github" runs it/)
    const listed = await runCommand(['list', '--refused'], { dir: inside.dir })
    expect(listed.stdout).toMatch(/request +kept +client .*\n.* yes +127\.0\.0\.1 +github /)
    const other = await runCommand(['drop', '--refused', '--hook', 'plain', '--json'], { dir: inside.dir })
    expect(other.json()).toEqual([{ dropped: 0 }])
    const dropped = await runCommand(['drop', '--refused'], { dir: inside.dir })
    expect(dropped.stdout).toBe('1 refused request is dropped.\n')
    expect(await list(inside)).toEqual([])
  })

  test('a request kept under another gateway token is not opened, and the command says what to do', async () => {
    const before = await startInside({ config: buildConfig(formerSecret) })
    await push(before, 'guid-1')
    await before.stop()
    const file = join(before.dir, 'hookloom.jsonc')
    const text = readFileSync(file, 'utf8').replaceAll(formerSecret, secret)
    writeFileSync(file, text.replace(gatewayToken, 'another-gateway-token-0123456789'))
    const inside = await startInside({ dir: before.dir })
    const { stdout } = await runCommand(['retry', '--refused'], { dir: inside.dir })
    expect(stdout).toContain('1 stays refused.')
    expect(stdout).toContain('kept under another gateway.token')
    await inside.stop()
    writeFileSync(file, text)
    expect(await retry(await startInside({ dir: before.dir }))).toMatchObject({ ran: 1 })
  })

  test('with hooks.quarantine false no refused request is kept, and a body over the limit is never kept', async () => {
    const off = await startCorrected((before) => push(before, 'guid-1'), { hooks: { quarantine: false } })
    expect(await retry(off)).toEqual({ ran: 0, repeated: 0, stillRefused: 0 })
    const small = await startCorrected(
      async (before) => {
        await push(before, 'guid-1', `{"text":"${'x'.repeat(100)}"}`)
        await push(before, 'guid-2')
      },
      { hooks: { quarantine: { maxBodyBytes: 100 } } },
    )
    expect(await retry(small)).toEqual({ ran: 1, repeated: 0, stillRefused: 0 })
  })
})

/** A schema whose errors could show keys of a payload, which may be personal data, and code that throws a text with the payload. */
const strictTransform = `import { z } from 'zod'
  import { defineTransform } from 'hookloom'
  export default defineTransform({
    payload: z.object({ people: z.record(z.string(), z.number()), note: z.strictObject({ text: z.string() }) }),
    run: ({ payload }) => { throw new Error(JSON.stringify(payload)) },
  })`

describe('the text of a refused request', () => {
  const body = '{"text":"canary-payload-5f1c"}'
  const bearer = `Bearer ${hookToken}`
  const headers = {
    'x-hub-signature-256': toSignature(secret, body),
    'x-canary-header': 'canary-header-77aa',
    cookie: 'session=canary-cookie-91bd',
    'x-api-key': 'canary-key-33ef',
    authorization: 'Bearer canary-guess-0c4e',
  }

  test('the text of a refused request is in no store, log, API, page or command, before and after a retry', async () => {
    const lines: string[] = []
    const push = (fields: object, text: string) => void lines.push(JSON.stringify(fields), text)
    const log = { debug: push, info: push, warn: push, error: push }
    const config = buildConfig(formerSecret)
    const strict = ['people', 'note'].map((path) => ({ match: { path }, transform: { module: 'strict.ts' } }))
    const signed = { match: { path: 'throws' }, verify: { scheme: 'github', secret: formerSecret } }
    const throwing = { ...signed, transform: { module: 'strict.ts' } }
    const hooks = { ...config.hooks, onTransformError: 'reject', allowedAgentIds: ['main'] }
    const inside = await startInside({
      config: { hooks: { ...hooks, mappings: [...hooks.mappings, ...strict, throwing] } },
      files: { 'hooks/transforms/strict.ts': strictTransform },
      log,
    })
    const sendRefused = async (path: string, sent: string, more: Record<string, string> = { authorization: bearer }) =>
      expect([400, 401, 415]).toContain((await post(inside, path, more, sent)).status)
    const key = 'canary-key-of-a-payload 7a@example.org'
    await sendRefused('/people', JSON.stringify({ people: { [key]: 'canary-value-8d' }, note: { text: 'x' } }))
    await sendRefused('/note', JSON.stringify({ people: {}, note: { text: 'x', [key]: 'canary-value-8d' } }))
    await sendRefused(
      '/people',
      JSON.stringify({ people: { [`${'canary-long-'.repeat(40)}`]: 'canary-value' }, note: 1 }),
    )
    await sendRefused('/agent', JSON.stringify({ message: 'canary-message-2b', agentId: 'canary-agent-9e' }))
    await sendRefused('/agent', JSON.stringify({ message: 'canary-message-2b', sessionKey: 'canary-session-4c' }))
    await sendRefused('/agent', JSON.stringify({ message: 'canary-message-2b', [key]: 1, model: 7 }))
    await sendRefused('/wake', '{"text": "canary-broken-6f', { authorization: bearer })
    await sendRefused('/wake', 'canary-text-1d', { authorization: bearer, 'content-type': 'text/canary-type-3a' })
    const thrown = JSON.stringify({ people: {}, note: { text: 'canary-thrown-5b' } })
    await sendRefused('/throws', thrown, { 'x-hub-signature-256': toSignature(secret, thrown) })
    const { requestId } = await post(inside, '/github?token_like=canary-query-e2d0', headers, body)
    await post(inside, '/wake', { authorization: bearer }, '{"text":["canary-payload-5f1c"]}')
    expect(await retry(inside)).toMatchObject({ ran: 0, stillRefused: 11 })
    expect((await list(inside)).map(({ isKept }) => isKept)).toEqual(Array.from({ length: 11 }, () => true))
    // with the correct secret, the transform of the hook `throws` throws a text with the payload
    const file = join(inside.dir, 'hookloom.jsonc')
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(formerSecret, secret))
    await expect.poll(() => lines.join('\n')).toMatch(/hookloom\.jsonc is live/)
    const again = await runCommand(['retry', '--refused', '--hook', 'throws'], { dir: inside.dir })
    expect(again.stdout).toMatch(/1 stays refused\.\n {2}1 × The transform threw\.\n$/)
    lines.push(again.stdout, again.stderr)
    const dry = await runCommand(['retry', '--refused', '--dry-run'], { dir: inside.dir })
    expect(dry.stdout).toMatch(/The payload does not fit: one of its fields: expected a number, found a string/)
    lines.push(dry.stdout, dry.stderr)

    const authorization = { authorization: `Bearer ${gatewayToken}` }
    const paths = ['/api/refusals', `/api/refusals/${requestId}`, '/api/deliveries', '/api/attention', '/metrics', '/']
    for (const path of paths) {
      const answer = await fetch(`${inside.adminUrl}${path}`, { headers: authorization })
      lines.push(path, await answer.text())
    }
    for (const command of [['list', '--refused'], ['list'], ['show', requestId], ['replay']]) {
      const { stdout, stderr } = await runCommand(command, { dir: inside.dir })
      lines.push(stdout, stderr)
    }
    const captured = await runCommand(['capture', requestId], { dir: inside.dir })
    expect(captured.code).not.toBe(0)
    await inside.stop()
    const state = join(inside.dir, 'state')
    for (const file of readdirSync(state, { encoding: 'utf8', recursive: true })) {
      const facts = statSync(join(state, file))
      lines.push(file, facts.isFile() ? readFileSync(join(state, file), 'latin1') : '')
      expect(facts.mode & 0o077).toBe(0)
    }
    expect(lines.join('\n')).not.toContain('canary-')
  })
})

test('a refused request that is not kept says why', async () => {
  const inside = await startInside({ config: buildConfig(secret, { quarantine: { maxBodyBytes: 4_096 } }) })
  const wrong = { 'x-github-event': 'push', 'x-hub-signature-256': toSignature(formerSecret, '{}') }
  const cases = [
    [await post(inside, '/plain', {}, '{}'), 'it was refused before its body was read'],
    [await post(inside, '/github', wrong, JSON.stringify({ text: 'x'.repeat(5_000) })), 'more than 4096 bytes'],
    [await post(inside, '/github', { ...wrong, authorization: `Bearer ${gatewayToken}` }, '{}'), 'the gateway token'],
    [
      await post(
        inside,
        '/plain',
        { authorization: `Bearer ${hookToken}`, 'idempotency-key': 'k'.repeat(2_000) },
        '{}',
      ),
      'only its sender can correct it',
    ],
  ] as const
  for (const [{ requestId }, why] of cases) {
    const { stdout } = await runCommand(['show', requestId], { dir: inside.dir })
    expect(stdout).toMatch(new RegExp(`kept +no: .*${why}`))
  }
})
