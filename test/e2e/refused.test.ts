// The operator sees why a request was refused, and in development the request itself. An answer shows neither.
import { createHmac } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { gatewayToken, hookToken } from './gateway.ts'
import { runCommand } from './command.ts'
import { json, send } from './wire.ts'
import { silentLog } from '../../src/base/log.ts'
import { Refusals } from '../../src/gateway/http/refusals.ts'
import { type Inside, readStore, startInside } from './inside.ts'

const secret = 'the secret of the sender'
const hooks = {
  mappings: [
    { id: 'deploy', match: { path: 'deploy' }, deliver: false },
    { id: 'signed', match: { path: 'github' }, verify: { scheme: 'github', secret }, deliver: false },
  ],
}

let gateway: Inside

beforeAll(async () => {
  gateway = await startInside({ config: { hooks }, development: true })
})

const Refusal = z.looseObject({ requestId: z.string(), status: z.number() })

async function askAdmin({ adminUrl }: Inside, path: string) {
  const reply = await fetch(`${adminUrl}${path}`, { headers: { authorization: `Bearer ${gatewayToken}` } })
  return { status: reply.status, body: await reply.json() }
}

async function refuse({ url }: Inside, path: string, headers: Record<string, string>, body = '{"a":1}') {
  const reply = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  })
  return { requestId: reply.headers.get('x-request-id') ?? '', status: reply.status, text: await reply.text() }
}

async function findRefusal(inside: Inside, requestId: string) {
  const { body } = await askAdmin(inside, '/api/refusals')
  return z
    .object({ refusals: z.array(Refusal) })
    .parse(body)
    .refusals.find((refusal) => refusal.requestId === requestId)
}

describe('credentials in the list of refusals', () => {
  const toBearer = (token: string) => ({ authorization: `Bearer ${token}` })

  test.each([
    ['none', {}],
    ['not-bearer', { authorization: 'Basic YTpi' }],
    ['openclaw-header', { 'x-openclaw-token': 'a wrong token' }],
    ['openclaw-header', { 'x-openclaw-token': hookToken, authorization: 'Basic YTpi' }],
    ['wrong-token', { ...toBearer('a wrong token'), 'x-openclaw-token': hookToken }],
    ['wrong-token', toBearer('a wrong token')],
    ['wrong-token', { 'x-service-token': 'a wrong token' }],
    ['gateway-token', toBearer(gatewayToken)],
  ])('the list of refusals shows the credential %s for a request with %j', async (credential, headers) => {
    const { requestId, status } = await refuse(gateway, '/deploy?x=1', headers)
    expect(status).toBe(401)
    const refusal = await findRefusal(gateway, requestId)
    expect(refusal).toMatchObject({ credential, client: '127.0.0.1', path: '/hooks/deploy', hook: 'deploy' })
    expect(JSON.stringify(refusal)).not.toContain('a wrong token')
  })

  test('the command list --refused names x-openclaw-token, and the sender learns no more than without that header', async () => {
    const plain = await refuse(gateway, '/deploy', {})
    const { requestId, status, text } = await refuse(gateway, '/deploy', { 'x-openclaw-token': hookToken })
    expect([status, text]).toEqual([401, plain.text.replace(plain.requestId, requestId)])
    for (const args of [
      ['list', '--refused'],
      ['show', requestId],
    ]) {
      const { stdout } = await runCommand(args, { dir: gateway.dir })
      expect(stdout).toContain('the token came as x-openclaw-token')
      expect(stdout).not.toContain(hookToken)
    }
    const { stdout } = await runCommand(['show', requestId], { dir: gateway.dir })
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain('let the sender use "Authorization: Bearer <token>"')
  })

  test('the credential is listed as hook-token for a request that passed the token check and was refused later', async () => {
    const { requestId } = await refuse(gateway, '/wake', toBearer(hookToken), '{"text":7}')
    expect(await findRefusal(gateway, requestId)).toMatchObject({ credential: 'hook-token', status: 400 })
  })
})

describe('unknown hook names', () => {
  test('an unknown hook name is listed with the nearest hook, and the sender does not see the nearest hook', async () => {
    const { requestId, status, text } = await refuse(gateway, '/deplou', { authorization: `Bearer ${hookToken}` })
    expect(status).toBe(404)
    expect(text).not.toContain('deploy')
    expect(await findRefusal(gateway, requestId)).toMatchObject({ path: '/hooks/deplou', nearestHook: 'deploy' })
  })

  test('an unknown hook name is compared with the built-in hooks too, and may have no nearest hook', async () => {
    const near = await refuse(gateway, '/agents', {})
    expect(await findRefusal(gateway, near.requestId)).toMatchObject({ status: 401, nearestHook: 'agent' })
    const far = await refuse(gateway, '/zzzzzzzzzz', {})
    expect(await findRefusal(gateway, far.requestId)).toMatchObject({ nearestHook: null })
    const exact = await refuse(gateway, '/deploy', {})
    expect(await findRefusal(gateway, exact.requestId)).toMatchObject({ nearestHook: null })
  })

  test('a refused request outside the prefix of the hooks is listed with its path and without a hook', async () => {
    const { requestId } = await refuse({ ...gateway, url: gateway.url.replace('/hooks', '') }, '/elsewhere', {})
    const refusal = await findRefusal(gateway, requestId)
    expect(refusal).toMatchObject({ status: 404, path: '/elsewhere', nearestHook: null })
    expect(refusal?.['hook']).toBeUndefined()
  })
})

describe('signatures that nothing verifies', () => {
  const body = '{"id":"evt_1"}'
  const own = 'the secret of an own sender'
  const sign = (algorithm: string, encoding: 'hex' | 'base64') =>
    createHmac(algorithm, own).update(body).digest(encoding)

  test('hookloom list and hookloom show lead to a mapping that accepts the next request, while the sender learns nothing', async () => {
    const headers = { 'x-acme-signature': `sha256=${sign('sha256', 'hex')}` }
    const plain = await refuse(gateway, '/acme', {}, body)
    const { requestId, status, text } = await refuse(gateway, '/acme', headers, body)
    expect([status, text]).toEqual([401, plain.text.replace(plain.requestId, requestId)])
    const listed = await runCommand(['list', '--refused'], { dir: gateway.dir })
    expect(listed.stdout).toMatch(/ acme +401 x-acme-signature looks like HMAC-S/)
    const shown = await runCommand(['show', requestId], { dir: gateway.dir })
    const [config = ''] = /^ +\{ "id"[^]*$/m.exec(shown.stdout) ?? []
    expect(shown.stdout).toContain('Put ACME_SECRET=')
    const mapping: unknown = JSON.parse(config.replace('${ACME_SECRET}', own))
    const next = await startInside({ config: { hooks: { mappings: [mapping] } } })
    expect(await refuse(next, '/acme', headers, body)).toMatchObject({ status: 200 })
    const other = { 'x-acme-signature': `sha256=${'0'.repeat(64)}` }
    expect(await refuse(next, '/acme', other, body)).toMatchObject({ status: 401 })
  })

  test('hookloom show leads to a mapping for a list of signatures over the text of a gzip body, in one line or in two', async () => {
    const old = createHmac('sha256', 'the secret before').update(body).digest('hex')
    const list = [`sha256=${sign('sha256', 'hex')}`, `sha256=${old}`]
    const post = async ({ port }: Inside, lines: readonly string[]) => {
      const signatures = lines.map((line) => ['x-acme-signature', line] as const)
      const headers = [...json, ['content-encoding', 'gzip'] as const, ...signatures]
      const { status, headers: sent } = await send(port, { target: '/hooks/packed', headers, body: gzipSync(body) })
      return { status, requestId: sent['x-request-id'] ?? '' }
    }
    const { requestId, status } = await post(gateway, [list.join(',')])
    expect(status).toBe(401)
    const shown = await runCommand(['show', requestId], { dir: gateway.dir })
    const [config = ''] = /^ +\{ "id"[^]*$/m.exec(shown.stdout) ?? []
    const mapping: unknown = JSON.parse(config.replace('${PACKED_SECRET}', own))
    expect(mapping).toMatchObject({ id: 'packed', verify: { prefix: 'sha256=', decompressed: true } })
    const next = await startInside({ config: { hooks: { mappings: [mapping] } } })
    expect((await post(next, list.toReversed())).status).toBe(200)
    expect((await post(next, [`sha256=${old}`, `sha256=${'0'.repeat(64)}`])).status).toBe(401)
    const [delivery] = await readStore(next.dir, (store) => store.deliveries({ limit: 1 }))
    const planned = delivery?.jobs[0]?.planned
    expect(planned?.kind === 'agent' && planned.action.message).toContain('evt_1')
  })

  test('when a mapping verifies the signature meanwhile, no second mapping is proposed', async () => {
    const changing = await startInside({ config: { hooks: { mappings: [] } } })
    const headers = { 'x-acme-signature': `sha256=${sign('sha256', 'hex')}` }
    const { requestId } = await refuse(changing, '/acme', headers, body)
    const verify = { scheme: 'generic-hmac', secret: own, header: 'X-Acme-Signature', prefix: 'sha256=' }
    const mapping = { id: 'acme', match: { path: 'acme', source: 'acme' }, verify, messageTemplate: '{{payload}}' }
    const file = join(changing.dir, 'hookloom.jsonc')
    const config = JSON.parse(readFileSync(file, 'utf8'))
    writeFileSync(file, JSON.stringify({ ...config, hooks: { ...config.hooks, mappings: [mapping] } }))
    const show = async () => (await runCommand(['show', requestId], { dir: changing.dir })).stdout
    await expect.poll(show).toContain('the mapping "acme" of this hook verifies such a request now')
    expect(await show()).not.toContain('messageTemplate')
  })

  test('for a hook that the token opens, the only advice is to add "verify" to its mapping', async () => {
    const { requestId } = await refuse(gateway, '/deploy', { 'x-sig': sign('sha512', 'base64') }, body)
    expect(await findRefusal(gateway, requestId)).toMatchObject({
      signature: {
        next: expect.stringContaining('into the mapping "deploy"'),
        config: expect.stringMatching(/^"verify": .*"algorithm": "sha512", "encoding": "base64" \}$/),
      },
    })
  })

  test('a failed check of a proof is explained by the reason of its failure', async () => {
    const headers = { 'x-hub-signature-256': `sha256=${sign('sha256', 'hex')}` }
    const { requestId } = await refuse(gateway, '/github', headers, body)
    expect(await findRefusal(gateway, requestId)).toMatchObject({ signature: null, trace: [{ mappingId: 'signed' }] })
  })
})

describe('requests of refusals', () => {
  const body = '{"zen":"Keep it simple."}'
  const wrong = { 'x-hub-signature-256': `sha256=${createHmac('sha256', 'another').update(body).digest('hex')}` }
  const Kept = z.object({
    request: z
      .object({ method: z.string(), url: z.string(), headers: z.record(z.string(), z.string()), body: z.string() })
      .nullable(),
  })
  const readRequest = async (inside: Inside, requestId: string) => {
    const reply = await askAdmin(inside, `/api/refusals/${requestId}`)
    return { status: reply.status, request: reply.status === 200 ? Kept.parse(reply.body).request : undefined }
  }

  test('a refused request is kept in development, with its proof and without the gateway’s credentials', async () => {
    const { requestId, status } = await refuse(
      gateway,
      '/github',
      { ...wrong, cookie: 'a=b', 'x-service-token': 'no' },
      body,
    )
    expect(status).toBe(401)
    const { request } = await readRequest(gateway, requestId)
    expect(request).toMatchObject({ method: 'POST', url: '/hooks/github', headers: wrong })
    expect(Buffer.from(request?.body ?? '', 'base64').toString()).toBe(body)
    expect(Object.keys(request?.headers ?? {})).not.toContain('cookie')
    expect(Object.keys(request?.headers ?? {})).not.toContain('x-service-token')
  })

  test('the API shows a refused request as null if no body was read, and an unknown id is answered 404', async () => {
    const { requestId } = await refuse(gateway, '/deploy', {})
    expect(await readRequest(gateway, requestId)).toEqual({ status: 200, request: null })
    expect((await readRequest(gateway, 'unknown')).status).toBe(404)
  })

  test('a request with a wrong token is shown in development too, without the token, and a transform can be made of it', async () => {
    const own = await startInside({ config: { hooks }, development: true })
    const { requestId } = await refuse(own, '/deploy', { authorization: 'Bearer a-wrong-token', 'x-kind': 'a' }, body)
    const { request } = await readRequest(own, requestId)
    expect(Buffer.from(request?.body ?? '', 'base64').toString()).toBe(body)
    expect(request?.headers).toMatchObject({ 'x-kind': 'a' })
    expect(Object.keys(request?.headers ?? {})).not.toContain('authorization')
    const made = await runCommand(['new', 'deploy', '--from', requestId], { dir: own.dir })
    expect(made).toMatchObject({ code: 0, stdout: expect.stringContaining('first.json') })
  })

  test('hookloom new says of a refused request that is kept encrypted how it runs', async () => {
    const production = await startInside({ config: { hooks } })
    const { requestId } = await refuse(production, '/deploy', { authorization: 'Bearer a-wrong-token' }, body)
    const { code, stderr } = await runCommand(['new', 'deploy', '--from', requestId], { dir: production.dir })
    expect([code, stderr]).toEqual([65, expect.stringContaining('"hookloom retry --refused --hook deploy" runs it')])
  })

  test('at most 4 MiB of refused requests are kept, and the oldest are deleted first', async () => {
    const first = await refuse(gateway, '/github', wrong, body)
    const large = JSON.stringify({ text: 'x'.repeat(250_000) })
    const last = await Promise.all(Array.from({ length: 18 }, () => refuse(gateway, '/github', wrong, large)))
    expect(last.map(({ status }) => status)).not.toContain(200)
    expect((await readRequest(gateway, first.requestId)).request).toBeNull()
    const kept = await Promise.all(last.map(async ({ requestId }) => (await readRequest(gateway, requestId)).request))
    expect(kept.filter((request) => request !== null)).toHaveLength(16)
  })

  test('a refused request is not kept by `hookloom start`', async () => {
    const production = await startInside({ config: { hooks } })
    const { requestId } = await refuse(production, '/github', wrong, body)
    expect(await readRequest(production, requestId)).toEqual({ status: 200, request: null })
  })

  test('an accepted request is not kept among the refused requests', () => {
    const refusals = new Refusals(true)
    const request = { method: 'POST', url: '/', headers: {}, rawBody: new Uint8Array(1024 * 1024) }
    refusals.note('refused', request)
    for (let n = 0; n < 10; n++) {
      refusals.note(`accepted-${n}`, request)
      refusals.forget(`accepted-${n}`)
    }
    expect(refusals.findRequest('accepted-9')).toBeUndefined()
    expect(refusals.findRequest('refused')).toBe(request)
  })
})

describe('refusals on the command line', () => {
  test('hookloom list --refused shows the client, the credential and the nearest hook, and never the token', async () => {
    const wrong = await refuse(gateway, '/deplou', { authorization: 'Bearer a wrong token' })
    const { stdout } = await runCommand(['list', '--refused'], { dir: gateway.dir })
    const line = stdout.split('\n').find((each) => each.includes(wrong.requestId.slice(0, 8)))
    expect(line).toMatch(/ 127\.0\.0\.1 +deplou .*401 a wrong token came; /)
    const shown = await runCommand(['show', wrong.requestId], { dir: gateway.dir })
    expect(shown.stdout).toContain('a wrong token came; did it mean the hook "deploy"?')
    expect(stdout + shown.stdout).not.toContain('Bearer a wrong')
  })

  test('a wrong signature is shown as the reason, once for all mappings that share it, and not as a missing credential', async () => {
    const logged: string[] = []
    const mappings = ['issue', 'push'].map((id) => ({ ...hooks.mappings[1], id, match: { path: 'github', event: id } }))
    const log = { ...silentLog, info: (_: object, text: string) => void logged.push(text) }
    const several = await startInside({ config: { hooks: { mappings } }, development: true, log })
    const headers = { 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` }
    const { requestId } = await refuse(several, '/github', headers)
    const why = 'issue and 1 more: No signature matches: the sender uses another secret, or the body was changed'
    const { stdout } = await runCommand(['list', '--refused'], { dir: several.dir })
    expect(stdout).toMatch(/ github +401 issue and 1 more: No signature matches/)
    const shown = (await runCommand(['show', requestId], { dir: several.dir })).stdout.replaceAll(/\s+/g, ' ')
    expect(shown.split('No signature matches')).toHaveLength(2)
    expect(shown).toContain(`why ${why}`)
    expect(stdout + shown).not.toContain('no credential came')
    expect(logged.filter((line) => line.includes(requestId.slice(0, 8)))).toEqual([expect.stringContaining(why)])
    const bare = await refuse(several, '/github', {})
    const { stdout: without } = await runCommand(['show', bare.requestId], { dir: several.dir })
    expect(without).toContain('no credential came')
  })

  test('hookloom verify --explain takes the id of a refused request in development', async () => {
    const body = '{"zen":"Keep it simple."}'
    const signature = `sha256=${createHmac('sha256', 'another').update(body).digest('hex')}`
    const { requestId } = await refuse(gateway, '/github', { 'x-hub-signature-256': signature }, body)
    for (const id of [requestId, requestId.slice(0, 13), 'last']) {
      const { code, json } = await runCommand(['verify', '--explain', id, '--json'], { dir: gateway.dir })
      expect([code, json()]).toMatchObject([77, [{ mappingId: 'signed', candidate: true, ok: false }]])
    }
    const bare = await refuse(gateway, '/deploy', {})
    const { code, stderr } = await runCommand(['verify', '--explain', bare.requestId], { dir: gateway.dir })
    expect([code, stderr]).toEqual([65, expect.stringContaining('hookloom dev')])
  })
})
