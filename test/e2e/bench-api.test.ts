// The bench of the admin API: the outcome of a typed request, and what can be done with the request.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { gatewayToken, hookToken, post, writeFiles } from './gateway.ts'
import { type Inside, startInside } from './inside.ts'

const code = `export default ({ payload }, { log, replay }) => {
  log('seen ' + payload.title)
  if (payload.bad) throw new TypeError('no title')
  return payload.skip ? null : { message: (replay ? 'tried ' : 'served ') + payload.title }
}\n`
const shopRef = 'ref-a7F3kq92-of-the-shop'
const secret = 'it-is-a-long-secret-of-github'
const mappings = [
  { id: 'closed', match: { path: 'review', payload: { action: 'closed' } }, messageTemplate: 'never' },
  { id: 'review', match: { path: 'review' }, transform: { module: 'review.ts' }, deliver: false },
  {
    id: 'plain',
    match: { path: 'plain', headers: { 'x-kind': 'hidden-word' } },
    instructions: 'Say it.',
    messageTemplate: 'Say {{text}}',
    deliver: false,
  },
  {
    id: 'coded',
    match: { path: 'coded' },
    transform: { module: 'review.ts' },
    messageTemplate: 'Say {{title}}',
    deliver: false,
    retain: true,
  },
  { id: 'kept', match: { path: 'kept' }, messageTemplate: 'Say {{text}}', deliver: false, retain: true },
  {
    id: 'github',
    match: { path: 'github' },
    verify: { scheme: 'github', secret },
    messageTemplate: '{{action}} {{n}}',
    deliver: false,
  },
]

describe('the bench of the admin API', () => {
  let gateway: Inside

  async function call(path: string, body?: unknown, url = gateway.adminUrl): Promise<Record<string, unknown>> {
    const answer = await fetch(`${url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${gatewayToken}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    // as: the answers of the admin port
    return { ...((await answer.json()) as Record<string, unknown>), answered: answer.status }
  }
  const tryIt = (hook: string, payload: unknown, others: object = {}) =>
    call('/api/try', { hook, body: typeof payload === 'string' ? payload : JSON.stringify(payload), ...others })
  const configFile = () => join(gateway.dir, 'hookloom.jsonc')

  beforeAll(async () => {
    gateway = await startInside({
      config: { hooks: { mappings, transforms: { env: ['SHOP_REF'] } } },
      files: { 'hooks/transforms/review.ts': code },
      env: { SHOP_REF: shopRef },
      development: true,
    })
  })

  test('a request entered in the bench shows each mapping that was tried, the action, the prompt and the log', async () => {
    const tried = await tryIt('review', { title: 'Fix it', action: 'opened' })
    expect(tried).toMatchObject({ answered: 200, isLive: true, decision: 'accept', mappingId: 'review', count: 1 })
    expect(tried).toMatchObject({
      trace: [
        { mappingId: 'closed', matched: false },
        { mappingId: 'review', matched: true },
      ],
      log: ['seen Fix it'],
      actions: [{ fields: { kind: 'agent', message: 'tried Fix it' } }],
      problem: null,
    })
    const { actions } = await tryIt('plain', { text: 'hello' }, { headers: { 'X-Kind': 'hidden-word' } })
    expect(actions).toMatchObject([{ prompt: expect.stringMatching(/^Say it\.\n\n[^]*Say hello/) }])
  })

  test('a tried request is not stored', async () => {
    const before = await call('/api/deliveries')
    await tryIt('review', { title: 'Fix it' })
    await tryIt('review', { bad: true })
    expect(await call('/api/deliveries')).toEqual(before)
  })

  test('a transform that throws shows its code frame; a skip and a refusal show their reason', async () => {
    const thrown = await tryIt('review', { bad: true, title: 'x' })
    expect(thrown).toMatchObject({
      decision: 'park',
      problem: { code: 'transform-failed', frame: expect.stringContaining('review.ts:3') },
      log: ['seen x'],
    })
    expect(await tryIt('review', { skip: true })).toMatchObject({
      decision: 'skip',
      why: expect.stringContaining('null'),
    })
    expect(await tryIt('review', '{"title":')).toMatchObject({
      decision: 'refuse',
      problem: { code: 'body-invalid', status: 400 },
    })
    expect(await tryIt('nobody', {})).toMatchObject({ decision: 'refuse', problem: { code: 'hook-unknown' } })
    expect(await tryIt('plain', { text: 'x' })).toMatchObject({ decision: 'skip', why: 'no mapping matched' })
    expect(await tryIt('agent', { text: 'x' })).toMatchObject({
      decision: 'refuse',
      problem: { code: 'payload-invalid' },
    })
  })

  test('a saved file is used at once, and a save that does not build shows its error', async () => {
    writeFiles(gateway.dir, { 'hooks/transforms/review.ts': code.replace("'tried '", "'edited '") })
    await expect
      .poll(() => tryIt('review', { title: 'x' }))
      .toMatchObject({ actions: [{ fields: { message: 'edited x' } }] })
    writeFiles(gateway.dir, { 'hooks/transforms/review.ts': 'export default ({' })
    await expect
      .poll(() => tryIt('review', { title: 'x' }))
      .toMatchObject({ isLive: false, decision: 'park', problem: { code: 'transform-build-failed' } })
    writeFiles(gateway.dir, { 'hooks/transforms/review.ts': code })
    await expect.poll(() => tryIt('review', { title: 'x' })).toMatchObject({ isLive: true, decision: 'accept' })
  })

  test('unsaved code is tried in place of its file, with its errors, and has no effects', async () => {
    const tryCode = (text: string, module = 'review.ts') =>
      tryIt('review', { title: 'x' }, { draft: { code: { module, text } } })
    expect(await call('/api/samples?hook=review')).toMatchObject({ code: [{ module: 'review.ts', text: code }] })
    expect(await call('/api/samples?hook=plain')).toMatchObject({ code: [] })
    expect(await tryCode(code.replace("'tried '", "'typed '"))).toMatchObject({
      isLive: true,
      decision: 'accept',
      mappingId: 'review',
      log: ['seen x'],
      actions: [{ fields: { message: 'typed x' } }],
    })
    expect(await tryIt('review', { title: 'x' })).toMatchObject({ actions: [{ fields: { message: 'tried x' } }] })
    expect(await tryCode('export default ({')).toMatchObject({
      decision: 'park',
      problem: { code: 'transform-build-failed', frame: expect.stringContaining('review.ts:1') },
    })
    expect(await tryCode('export default () => { throw new TypeError("typed") }')).toMatchObject({
      decision: 'park',
      problem: { code: 'transform-failed', frame: expect.stringContaining('TypeError: typed') },
    })
    const made = join(gateway.dir, 'made.txt')
    const writes = `import { writeFileSync } from 'node:fs'
      export default () => { writeFileSync(${JSON.stringify(made)}, '') ; return { message: 'x' } }`
    expect(await tryCode(writes)).toMatchObject({
      decision: 'park',
      problem: { frame: expect.stringContaining('writeFileSync') },
    })
    expect(existsSync(made)).toBe(false)
    expect(await tryCode('for (;;);\nexport default () => null')).toMatchObject({ decision: 'park' })
    expect(await tryCode(code)).toMatchObject({ decision: 'accept' })
    expect(await tryCode(code, 'other.ts')).toMatchObject({ answered: 404 })
    expect(readFileSync(join(gateway.dir, 'hooks/transforms/review.ts'), 'utf8')).toBe(code)
  })

  test('unsaved code and an unsaved template are compared with the live code on kept requests', async () => {
    await post({ ...gateway, token: hookToken }, 'coded', { title: 'one' })
    const ask = (draft: object) => call('/api/try/kept', { hook: 'coded', ...draft })
    const text = code.replaceAll('served', 'typed').replaceAll('tried', 'typed')
    expect(await ask({ code: { module: 'review.ts', text: code } })).toMatchObject({ report: { counts: { same: 1 } } })
    expect(await ask({ code: { module: 'review.ts', text } })).toMatchObject({
      report: { total: 1, counts: { changed: 1 } },
      unread: [],
    })
    const both = { code: { module: 'review.ts', text }, mappingId: 'coded', template: 'Say {{titel}}' }
    expect(await ask(both)).toMatchObject({ report: { total: 1 }, unread: [{ path: 'titel' }] })
  })

  test('only an operator who may change everything runs unsaved code, and only under hookloom dev', async () => {
    const draft = { code: { module: 'review.ts', text: code } }
    const operator = await call('/api/tokens', { name: 'operator', may: ['operate'] })
    const ask = async (path: string, body: object) =>
      await fetch(`${gateway.adminUrl}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${String(operator['token'])}` },
        body: JSON.stringify(body),
      })
    expect((await ask('/api/try', { hook: 'review', body: '{}' })).status).toBe(200)
    expect((await ask('/api/try', { hook: 'review', body: '{}', draft })).status).toBe(401)
    expect((await ask('/api/try/kept', { hook: 'review', ...draft })).status).toBe(401)
    const production = await startInside({
      config: { hooks: { mappings } },
      files: { 'hooks/transforms/review.ts': code },
    })
    const { adminUrl } = production
    expect(await call('/api/samples?hook=review', undefined, adminUrl)).toMatchObject({ code: [] })
    const refused = { answered: 409, error: expect.stringContaining('hookloom dev') }
    expect(await call('/api/try', { hook: 'review', body: '{}', draft }, adminUrl)).toMatchObject(refused)
    expect(await call('/api/try/kept', { hook: 'review', ...draft }, adminUrl)).toMatchObject(refused)
  })

  test('a draft is compared with the live code on kept requests, and a path that none of them has is named', async () => {
    for (const text of ['one', 'two']) {
      await post({ ...gateway, token: hookToken }, 'kept', { text, by: { name: 'Ada' } })
    }
    const ask = (template: string) => call('/api/try/kept', { hook: 'kept', mappingId: 'kept', template })
    expect(await ask('Say {{text}}')).toMatchObject({ report: { total: 2, counts: { same: 2 } }, unread: [] })
    await expect
      .poll(() => ask('Say {{text}} {{by.nmae}}{{by.nmae}}'))
      .toMatchObject({
        report: { compared: 'live', total: 2, counts: { same: 0, changed: 2 } },
        unread: [{ path: 'by.nmae', near: 'by.name' }],
      })
    expect(await call('/api/try/kept', { hook: 'kept', template: 'Say {{' })).toMatchObject({ answered: 400 })
    // a new mapping comes after the others
    expect(await call('/api/try/kept', { hook: 'kept', template: 'new' })).toMatchObject({
      report: { counts: { same: 2 } },
    })
    const { samples } = await call('/api/samples?hook=kept')
    expect(samples).toMatchObject([
      { kind: 'kept', summary: 'Say two' },
      { kind: 'kept', summary: 'Say one' },
    ])
  })

  test('a draft template is tried in its own mapping, and in a new mapping of an unknown hook', async () => {
    const draft = { mappingId: 'github', template: 'Now {{n}}' }
    expect(await tryIt('github', { n: 7 }, { draft })).toMatchObject({
      actions: [{ fields: { message: 'Now 7' } }],
    })
    expect(await tryIt('github', { n: 7, action: 'a' })).toMatchObject({
      actions: [{ fields: { message: 'a 7' } }],
    })
    const news = await tryIt('fresh', { n: 7 }, { draft: { template: 'New {{n}}' } })
    expect(news).toMatchObject({ mappingId: 'fresh', actions: [{ fields: { message: 'New 7' } }] })
    const wrong = await tryIt('fresh', { n: 7 }, { draft: { template: 'New {{n' } })
    // the configuration is valid: only the request is wrong
    expect(wrong).toMatchObject({
      answered: 400,
      code: 'usage-invalid',
      error: expect.stringMatching(/^The draft: messageTemplate: /),
    })
    for (const template of [' ', '{{#if a}}x{{/if}}'])
      expect(await tryIt('fresh', { n: 7 }, { draft: { template } })).toMatchObject({
        answered: 400,
        code: 'usage-invalid',
      })
    const kept = await call('/api/try', { last: 5, draft: { template: 'New {{n' } })
    expect(kept).toMatchObject({ answered: 400, code: 'usage-invalid' })
  })

  test('a request sent from the bench has the proof of its sender or the hook token, and its numbers as typed', async () => {
    const signed = await call('/api/send', { hook: 'github', body: '{"action":"opened","n":1.50}' })
    expect(signed).toMatchObject({ status: 200, note: null })
    const request = await call(`/api/deliveries/${String(signed['deliveryId'])}/request`)
    expect(request).toMatchObject({ verifiedBy: 'github', body: '{"action":"opened","n":1.50}' })
    const plain = await call('/api/send', {
      hook: 'review',
      body: '{"title":"sent"}',
      headers: { Host: 'x', 'X-A': 'b' },
    })
    expect(plain).toMatchObject({ status: 200, deliveryId: expect.any(String) })
    expect(await call('/api/send', { hook: 'nobody', body: '{}' })).toMatchObject({ answered: 200, status: 404 })
    // the same request again is another delivery
    const again = await call('/api/send', { hook: 'review', body: '{"title":"sent"}' })
    expect(again['deliveryId']).not.toBe(plain['deliveryId'])
  })

  test('a body that JSON escapes to six times its size is not too large', async () => {
    const control = await call('/api/send', { hook: 'review', body: '\u0001'.repeat(200_000) })
    expect(control).toMatchObject({ answered: 200, status: 400 })
  })

  test('a typed request becomes a fixture, without the secrets of the configuration and of its transforms', async () => {
    const title = `see ${hookToken}, ${shopRef} and ${Buffer.from(shopRef).toString('base64url')}`
    const body = JSON.stringify({ title, action: 'opened' })
    const made = await call('/api/fixtures', { hook: 'review', body, name: 'typed', headers: { cookie: 'a=b' } })
    expect(made).toMatchObject({ answered: 200, module: 'review.ts', decision: 'accept', removed: ['payload.title'] })
    const file = join(gateway.dir, 'hooks/transforms/review.fixtures/typed.json')
    expect(made['file']).toBe(file)
    expect(readFileSync(file, 'utf8')).not.toMatch(/hook-secret|a=b/)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({
      request: { payload: { title: 'see [removed], [removed] and [removed]' } },
    })
    expect(await call('/api/fixtures', { hook: 'review', body, name: 'typed' })).toMatchObject({ answered: 409 })
    const out = await call('/api/fixtures', { hook: 'review', body, name: '../out' })
    expect(out).toMatchObject({ answered: 400, code: 'usage-invalid' })
    expect(await call('/api/fixtures', { hook: 'plain', body: '{}', module: 'other.ts' })).toMatchObject({
      answered: 400,
    })
    expect(existsSync(join(gateway.dir, 'hooks/transforms/other.fixtures'))).toBe(false)
  })

  test('hooks are listed with their proof, mappings and counts of the last hour, but without the header values of their conditions', async () => {
    const { deliveryId } = await post({ url: gateway.url, token: hookToken }, 'review', { bad: true })
    const listed = await call('/api/hooks')
    expect(listed).toMatchObject({ answered: 200, canEdit: true, hooksUrl: gateway.url })
    expect(JSON.stringify(listed)).not.toMatch(/hidden-word|it-is-a-long-secret/)
    const hooks = new Map((listed['hooks'] as { name: string }[]).map((hook) => [hook.name, hook]))
    expect([...hooks.keys()]).toEqual(['review', 'plain', 'coded', 'kept', 'github', 'agent', 'wake'])
    expect(hooks.get('review')).toMatchObject({
      proof: { token: true, schemes: [] },
      mappings: [
        { id: 'closed', conditions: '{"payload":{"action":"closed"}}', isEditable: true },
        { id: 'review', conditions: null, isEditable: false, transform: { module: 'review.ts', problem: null } },
      ],
      lastHour: { parked: 1 },
      lastFailure: { kind: 'parked', id: deliveryId },
    })
    expect(hooks.get('github')).toMatchObject({ proof: { token: false, schemes: ['github'] } })
  })

  test('the samples of a hook are the fixtures of its transform, the bundled requests of its sender, and the kept requests', async () => {
    const listKinds = async (hook: string) => {
      const { samples } = await call(`/api/samples?hook=${hook}`)
      return (samples as { kind: string; name: string }[]).map(({ kind, name }) => `${kind} ${name}`)
    }
    await call('/api/fixtures', { hook: 'review', body: '{"title":"x"}', name: 'sample' })
    for (const hook of ['review', 'github']) await call('/api/send', { hook, body: '{"title":"sent"}' })
    expect(await listKinds('review')).toEqual(expect.arrayContaining(['fixture sample', 'kept delivery']))
    expect(await listKinds('github')).toEqual(expect.arrayContaining(['bundled pull-request-opened', 'kept delivery']))
    expect(await listKinds('wake')).toEqual(['bundled example'])
    expect(await listKinds('plain')).toEqual([])
    expect(await call('/api/samples')).toMatchObject({ answered: 400 })
  })

  test('saving a template keeps a comment of hookloom.jsonc, and only a gateway in development allows it', async () => {
    writeFileSync(configFile(), readFileSync(configFile(), 'utf8').replace('"mappings":', '// the rules\n"mappings":'))
    const saved = await call('/api/mappings', { hook: 'plain', mappingId: 'plain', template: 'Tell {{text}}' })
    expect(saved).toMatchObject({ answered: 200, mappingId: 'plain', file: configFile(), shadowedBy: null })
    const added = await call('/api/mappings', { hook: 'fresh', template: 'Fresh {{n}}' })
    expect(added).toMatchObject({ answered: 200, mappingId: 'fresh', shadowedBy: null })
    const text = readFileSync(configFile(), 'utf8')
    expect(text).toContain('// the rules')
    expect(text).toContain('Tell {{text}}')
    await expect
      .poll(() => tryIt('fresh', { n: 1 }))
      .toMatchObject({ isLive: true, actions: [{ fields: { message: 'Fresh 1' } }] })
    // an earlier mapping takes the same requests
    expect(await call('/api/mappings', { hook: 'github', template: 'x' })).toMatchObject({ shadowedBy: 'github' })

    const before = readFileSync(configFile(), 'utf8')
    const code409 = await call('/api/mappings', { hook: 'review', mappingId: 'review', template: 'x' })
    expect(code409).toMatchObject({ answered: 409, error: expect.stringContaining('review.ts') })
    expect(await call('/api/mappings', { hook: 'plain', mappingId: 'plain', template: '{{' })).toMatchObject({
      answered: 400,
    })
    expect(await call('/api/mappings', { hook: 'x', mappingId: 'none', template: 'x' })).toMatchObject({
      answered: 404,
    })
    expect(await call('/api/mappings', { hook: 'x', template: 'x', agentId: 'root' })).toMatchObject({ answered: 400 })
    expect(readFileSync(configFile(), 'utf8')).toBe(before)

    const production = await startInside({
      config: { hooks: { mappings } },
      files: { 'hooks/transforms/review.ts': code },
    })
    const refused = await call('/api/mappings', { hook: 'fresh', template: 'x' }, production.adminUrl)
    expect(refused).toMatchObject({ answered: 409, error: expect.stringContaining('hookloom dev') })
    expect(await call('/api/transforms', { hook: 'fresh', body: '{}' }, production.adminUrl)).toMatchObject({
      answered: 409,
      error: expect.stringContaining('hookloom dev'),
    })
    expect(readFileSync(join(production.dir, 'hookloom.jsonc'), 'utf8')).not.toContain('fresh')
  })

  test('a malformed request is refused with the name of the field', async () => {
    expect(await call('/api/try', { hook: 'review', body: 7 })).toMatchObject({
      answered: 400,
      error: expect.stringContaining('Wrong: body'),
    })
    expect(await call('/api/try', { hook: '', body: '' })).toMatchObject({ answered: 400 })
  })
})
