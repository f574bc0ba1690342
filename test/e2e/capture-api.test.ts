// Fixtures of kept requests through the admin API: what is written, where, and what is refused.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { runCommand } from './command.ts'
import { gatewayToken, hookToken, makeFolder, post, writeFiles } from './gateway.ts'
import { type Inside, startInside } from './inside.ts'

const root = 'hooks/transforms'
const config = {
  server: { maxBodyBytes: 3_000_000 },
  hooks: {
    retain: 50,
    mappings: [
      { id: 'x', match: { path: 'x' }, transform: { module: 'x.ts' }, deliver: false, retain: true },
      { id: 'deep', match: { path: 'deep' }, transform: { module: 'a/b.ts' }, deliver: false },
      {
        id: 'pulls',
        match: { path: 'pulls', headers: { 'x-acme-event': 'pull_request' } },
        transform: { module: 'x.ts' },
      },
      { id: 'plain', match: { path: 'plain' }, messageTemplate: 'm', deliver: false },
      { id: 'brief', match: { path: 'brief' }, transform: { module: 'x.ts' }, deliver: false, retain: false },
    ],
  },
}
const code = `export default ({ payload }, { replay }) => {
  if (payload.bad) throw new TypeError('never')
  return payload.skip ? null : { message: (replay ? 'replayed ' : 'Hello ') + payload.name }
}\n`

describe('POST /api/deliveries/<id>/capture', () => {
  let gateway: Inside
  const folder = (name: string) => join(gateway.dir, root, name)
  const read = (file: string) => JSON.parse(readFileSync(file, 'utf8'))

  async function send(hook: string, payload: unknown, headers: Record<string, string> = {}): Promise<string> {
    const { deliveryId } = await post({ url: gateway.url, token: hookToken }, hook, payload, headers)
    return String(deliveryId)
  }

  async function capture(id: string, body: unknown = {}) {
    const answer = await fetch(`${gateway.adminUrl}/api/deliveries/${id}/capture`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gatewayToken}` },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
    // as: the answers of the admin port
    const made = (await answer.json()) as Record<string, unknown>
    return { ...made, status: answer.status, error: made['error'], removed: made['removed'] }
  }

  beforeAll(async () => {
    gateway = await startInside({ config, files: { [`${root}/x.ts`]: code, [`${root}/a/b.ts`]: code } })
  })

  test('the event name in a header stays in the fixture if a condition of the mapping compares the header', async () => {
    const payload = { name: 'a pull_request', pull_request: { id: 7 } }
    const made = await capture(await send('pulls', payload, { 'x-acme-event': 'pull_request' }))
    expect(made).toMatchObject({ status: 200, removed: [] })
    const { request } = read(String((made as { file?: unknown }).file))
    expect(request).toMatchObject({ payload, headers: { 'x-acme-event': 'pull_request' } })
  })

  test('a capture writes the same fixture as hookloom capture, without secrets and readable only by its owner', async () => {
    const payload = { name: 'Ada', auth: { access_token: 'tok-1' }, note: `see ${hookToken}` }
    const id = await send('x', payload, { 'x-api-key': 'key-1', cookie: 'session=cook-1', 'x-acme-time': '12' })
    const made = await capture(id)
    expect(made).toMatchObject({
      status: 200,
      ok: true,
      module: 'x.ts',
      deliveryId: id,
      decision: 'accept',
      note: null,
    })
    expect(made).toMatchObject({ file: folder(`x.fixtures/x-${id.slice(-8)}.json`) })
    expect(made).toMatchObject({ removed: expect.arrayContaining(['payload.auth.access_token', 'payload.note']) })
    const file = folder(`x.fixtures/x-${id.slice(-8)}.json`)
    expect(readFileSync(file, 'utf8')).not.toMatch(/tok-1|key-1|cook-1|hook-secret/)
    expect(read(file).expect).toEqual({
      decision: 'accept',
      actions: [{ kind: 'agent', message: 'replayed Ada', deliver: false }],
    })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const command = await runCommand(['capture', id, '--name', 'twin', '--json'], { dir: gateway.dir })
    expect(command.json()).toMatchObject([{ module: 'x.ts', deliveryId: id, removed: made.removed }])
    expect(readFileSync(folder('x.fixtures/twin.json'), 'utf8')).toBe(readFileSync(file, 'utf8'))
  })

  test('a capture takes a name, creates the folder of its module, and overwrites nothing', async () => {
    const id = await send('deep', { name: 'Eve' })
    expect(await capture(id, { name: 'opened.json' })).toMatchObject({ file: folder('a/b.fixtures/opened.json') })
    const before = readFileSync(folder('a/b.fixtures/opened.json'), 'utf8')
    const again = await capture(await send('deep', { name: 'Other' }), { name: 'opened' })
    expect([again.status, again.error]).toEqual([409, expect.stringContaining('exists already')])
    expect(readFileSync(folder('a/b.fixtures/opened.json'), 'utf8')).toBe(before)
    const all = await Promise.all(Array.from({ length: 5 }, () => capture(id, { name: 'once' })))
    expect(all.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409, 409])
    expect(readdirSync(folder('a/b.fixtures')).toSorted()).toEqual(['once.json', 'opened.json'])
  })

  test('a capture of a parked delivery makes a failing fixture, and a capture of a skipped one expects a skip', async () => {
    const parked = await capture(await send('deep', { bad: true }), { name: 'red' })
    expect(parked).toMatchObject({ decision: 'accept', note: expect.stringContaining('TypeError') })
    const answer = await fetch(`${gateway.url}/deep`, {
      method: 'POST',
      headers: { authorization: `Bearer ${hookToken}`, 'content-type': 'application/json' },
      body: '{"skip":true}',
    })
    expect(answer.status).toBe(204)
    const list = await fetch(`${gateway.adminUrl}/api/deliveries?state=skipped`, {
      headers: { authorization: `Bearer ${gatewayToken}` },
    })
    // as: the answer of the admin port
    const { deliveries } = (await list.json()) as { deliveries: { deliveryId: string }[] }
    const skipped = await capture(deliveries.at(-1)?.deliveryId ?? '', { name: 'skips' })
    expect(skipped).toMatchObject({ status: 200, decision: 'skip' })
  })

  test.each(['../up', '..', '.', '/etc/x', 'a/b', 'a\\b', 'a.b', '.hidden', 'x\0y', 'n'.repeat(101), ' ', 'ä'])(
    'the fixture name %j is refused',
    async (name) => {
      const listFiles = () => readdirSync(join(gateway.dir, 'hooks'), { recursive: true })
      const before = listFiles()
      expect((await capture(await send('x', { name: 'x' }), { name })).status).toBe(400)
      expect(listFiles()).toEqual(before)
    },
  )

  test.each([
    ['a name of another type', { name: 1 }],
    ['an unknown key', { path: '/etc/passwd' }],
    ['a module that no mapping names', { module: '../../x.ts' }],
    ['a module named like a property of Object', { module: 'constructor' }],
    ['invalid JSON', '{'],
    ['a body that is too long', { name: 'x'.repeat(5_000) }],
  ])('a capture with %s is refused', async (_, body) => {
    expect((await capture(await send('x', { name: 'x' }), body)).status).toBe(400)
  })

  test('a capture is refused if the delivery is unknown, its request is not kept, or no transform takes it', async () => {
    expect((await capture('nobody')).status).toBe(404)
    expect(await capture(await send('brief', { name: 'x' }))).toMatchObject({
      status: 409,
      error: expect.stringMatching(/not kept/),
    })
    const plain = await send('plain', { name: 'x' })
    expect(await capture(plain)).toMatchObject({
      status: 409,
      error: expect.stringMatching(/"plain" has no transform/),
    })
    expect(await capture(plain, { module: 'a/b.ts', name: 'borrowed' })).toMatchObject({ status: 200 })
  })

  test('a request that is too large for a fixture is refused, and the answer about a request with many secrets stays short', async () => {
    for (const text of ['x'.repeat(1_100_000), 'https://a.example/'.padEnd(1_100_000, '?')]) {
      expect(await capture(await send('x', { text }))).toMatchObject({
        status: 409,
        error: expect.stringMatching(/at most 1,000,000/),
      })
    }
    // the payload has 900 kB as sent, and more when it is formatted
    const rows = Array.from({ length: 300_000 }, () => 1)
    expect(await capture(await send('x', { rows }))).toMatchObject({
      status: 409,
      error: expect.stringMatching(/at most 1,000,000/),
    })
    const urls = await capture(await send('x', { text: 'https://a.example/'.padEnd(900_000, '?') }), { name: 'urls' })
    expect(urls.status).toBe(200)
    // a list of the places of each secret would repeat the long key
    const long = { ['k'.repeat(100_000)]: Array.from({ length: 5_000 }, () => ({ token: 't' })) }
    const places = await capture(await send('x', long), { name: 'places' })
    expect(JSON.stringify(places).length).toBeLessThan(30_000)
  })

  test('a capture does not follow a symlink out of the transforms root, and does not replace one', async () => {
    const outside = makeFolder()
    const own = await startInside({ config, files: { [`${root}/x.ts`]: code, [`${root}/a/b.ts`]: code } })
    const before = gateway
    gateway = own
    try {
      symlinkSync(outside, folder('x.fixtures'))
      const id = await send('x', { name: 'x' })
      expect(await capture(id, { name: 'out' })).toMatchObject({
        status: 409,
        error: expect.stringMatching(/leads out of/),
      })
      symlinkSync(join(outside, 'missing'), folder('a/b.fixtures'))
      const deep = await send('deep', { name: 'x' })
      expect((await capture(deep, { name: 'out' })).status).not.toBe(200)
      rmSync(folder('a'), { recursive: true })
      symlinkSync(outside, folder('a'))
      expect((await capture(deep, { name: 'out' })).status).not.toBe(200)
      expect(readdirSync(outside)).toEqual([])
    } finally {
      gateway = before
    }
    mkdirSync(folder('a/b.fixtures'), { recursive: true })
    const target = join(outside, 'target.json')
    symlinkSync(target, folder('a/b.fixtures/dangling.json'))
    writeFileSync(join(outside, 'there.json'), 'mine')
    symlinkSync(join(outside, 'there.json'), folder('a/b.fixtures/there.json'))
    const id = await send('deep', { name: 'x' })
    for (const name of ['dangling', 'there']) expect((await capture(id, { name })).status).toBe(409)
    expect([existsSync(target), readFileSync(join(outside, 'there.json'), 'utf8')]).toEqual([false, 'mine'])
    expect(readdirSync(folder('a/b.fixtures')).filter((name) => name.includes('tmp'))).toEqual([])
  })

  test('a capture and hookloom capture leave out each expected field with a value of the environment or the configuration, unless the request has that value too', async () => {
    const { hooks } = config
    const transforms = { env: ['ACME_KEY', 'STAGE'] }
    const own = await startInside({
      config: { ...config, hooks: { ...hooks, transforms } },
      files: {
        '.env': 'ACME_KEY=acme-key-1\nSTAGE=production\n',
        [`${root}/x.ts`]: `export default ({ payload }) => [
          { message: payload.name + ' in ' + process.env.STAGE, name: 'by ' + process.env.ACME_KEY },
          { message: ${JSON.stringify(hookToken)} },
        ]\n`,
      },
    })
    const before = gateway
    gateway = own
    try {
      const id = await send('x', { name: 'Ada', stage: 'production' })
      const made = await capture(id, { name: 'made' })
      expect(made).toMatchObject({ status: 200, removed: expect.arrayContaining(['expect.actions[0].name']) })
      expect(read(folder('x.fixtures/made.json')).expect).toEqual({
        decision: 'accept',
        actions: [
          { kind: 'agent', message: 'Ada in production', deliver: false },
          { kind: 'agent', deliver: false },
        ],
      })
      await runCommand(['capture', id, '--name', 'twin'], { dir: own.dir })
      expect(read(folder('x.fixtures/twin.json'))).toEqual(read(folder('x.fixtures/made.json')))
      expect(await runCommand(['test', 'x'], { dir: own.dir })).toMatchObject({ code: 0 })
    } finally {
      gateway = before
    }
  })

  test('a capture is refused if the folder already has the maximum number of fixtures that a gateway reads', async () => {
    const own = await startInside({ config, files: { [`${root}/x.ts`]: code, [`${root}/a/b.ts`]: code } })
    const before = gateway
    gateway = own
    try {
      const id = await send('deep', { name: 'x' })
      const files = Array.from({ length: 200 }, (_, n): [string, string] => [`${root}/a/b.fixtures/${n}.json`, '{}'])
      writeFiles(own.dir, Object.fromEntries(files))
      expect(await capture(id)).toMatchObject({ status: 409, error: expect.stringMatching(/200 fixtures/) })
    } finally {
      gateway = before
    }
  })
})
