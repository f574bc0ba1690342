// Fixtures from the operator's own requests: `new --from` creates them, and `test -u` writes what they expect.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runCommand } from './command.ts'
import { hookToken, makeConfigDir, post } from './gateway.ts'
import { startInside } from './inside.ts'

const root = 'hooks/transforms'
const readFixture = (dir: string, name = 'mine') =>
  JSON.parse(readFileSync(join(dir, root, `${name}.fixtures/first.json`), 'utf8'))
const passes = { code: 0, stdout: expect.stringContaining('1 passed, 0 failed') }

describe('hookloom new --from', () => {
  test('hookloom new --from takes a payload from a file, without its secrets, and its fixture passes', async () => {
    const dir = makeConfigDir({
      files: { 'mine.json': '{"order":{"title":"Tea"},"access_token":"s3cret","link":"https://u:s3cret@x.example"}' },
    })
    const made = await runCommand(['new', 'mine', '--from', join(dir, 'mine.json')], { dir })
    expect(made).toMatchObject({ code: 0, stderr: '' })
    expect(made.stdout).toMatch(/removed +payload\.access_token, payload\.link/)
    expect(readFixture(dir)).toMatchObject({
      request: { path: 'mine', payload: { order: { title: 'Tea' }, access_token: '[removed]' } },
      expect: { decision: 'accept', actions: [{ message: 'Look at this title: Tea' }] },
    })
    expect(JSON.stringify(readFixture(dir))).not.toContain('s3cret')
    expect(await runCommand(['test', 'mine'], { dir })).toMatchObject(passes)
  })

  test('hookloom new adds the code to the existing mapping of the hook, so that no second mapping accepts requests without a proof', async () => {
    const verify = {
      scheme: 'generic-hmac',
      header: 'x-acme-signature',
      prefix: 'sha256=',
      secret: 'acme-secret-0123456789',
    }
    const dir = makeConfigDir({
      config: { hooks: { mappings: [{ id: 'signed', match: { path: 'acme' }, verify }] } },
      files: { 'acme.json': '{"title":"Tea"}' },
    })
    const made = await runCommand(['new', 'acme', '--from', join(dir, 'acme.json')], { dir })
    expect(made).toMatchObject({ code: 0, stderr: '', stdout: expect.not.stringContaining('comes first') })
    const { hooks } = JSON.parse(readFileSync(join(dir, 'hookloom.jsonc'), 'utf8'))
    expect(hooks.mappings).toEqual([
      { id: 'signed', match: { path: 'acme' }, verify, transform: { module: 'acme.ts' } },
    ])
    expect(await runCommand(['test', 'acme'], { dir })).toMatchObject(passes)
  })

  test('hookloom new --from takes the request of a fixture, or a payload from standard input', async () => {
    const request = { path: 'other', headers: { 'x-acme-event': 'order' }, payload: { subject: 'Tea' } }
    const dir = makeConfigDir({ files: { 'mine.json': JSON.stringify({ request, expect: {} }) } })
    expect(await runCommand(['new', 'mine', '--from', join(dir, 'mine.json')], { dir })).toMatchObject({ code: 0 })
    expect(readFixture(dir).request).toEqual({
      path: 'mine',
      headers: { 'content-type': 'application/json', 'x-acme-event': 'order' },
      payload: { subject: 'Tea' },
    })
    expect(await runCommand(['new', 'typed', '--from', '-'], { dir, stdin: '{"name":"Ada"}' })).toMatchObject({
      code: 0,
    })
    expect(readFixture(dir, 'typed').request.payload).toEqual({ name: 'Ada' })
  })

  test('hookloom new --from takes the last delivery, or one by its id', async () => {
    const { dir, url } = await startInside({
      config: { hooks: { mappings: [{ id: 'in', match: { path: 'in' }, messageTemplate: 'x', retain: true }] } },
    })
    const to = { url, token: hookToken }
    const { deliveryId } = await post(to, 'in', { title: 'first', token: hookToken })
    await post(to, 'in', { title: 'second' }, { 'x-acme-event': 'order' })
    expect(await runCommand(['new', 'mine', '--from', 'last'], { dir })).toMatchObject({
      code: 0,
      stderr: 'No request of the hook "mine" is stored: the last one came for "in".\n',
    })
    expect(readFixture(dir).request).toMatchObject({
      path: 'mine',
      headers: { 'x-acme-event': 'order' },
      payload: { title: 'second' },
    })
    expect(await runCommand(['test', 'mine'], { dir })).toMatchObject(passes)
    expect(await runCommand(['new', 'older', '--from', String(deliveryId)], { dir })).toMatchObject({ code: 0 })
    expect(readFixture(dir, 'older').request.payload).toEqual({ title: 'first', token: '[removed]' })
  })

  test('hookloom new --from last takes the last request of the hook that it names, although newer ones came for other hooks', async () => {
    const retained = (path: string) => ({ id: path, match: { path }, messageTemplate: 'x', retain: true })
    const { dir, url } = await startInside({ config: { hooks: { mappings: [retained('mine'), retained('other')] } } })
    await post({ url, token: hookToken }, 'mine', { title: 'of mine' })
    await post({ url, token: hookToken }, 'other', { title: 'of another' })
    expect(await runCommand(['new', 'mine', '--from', 'last'], { dir })).toMatchObject({ code: 0, stderr: '' })
    expect(readFixture(dir).request.payload).toEqual({ title: 'of mine' })
  })

  test('hookloom new --from takes a request that came before its hook existed, by the id of the refusal', async () => {
    const { dir, url } = await startInside({ development: true, config: {} })
    const answer = await fetch(`${url}/statuspage`, {
      method: 'POST',
      headers: { authorization: `Bearer ${hookToken}`, 'content-type': 'application/x-www-form-urlencoded' },
      body: 'component=api&state=down',
    })
    expect(answer.status).toBe(404)
    const requestId = answer.headers.get('x-request-id') ?? ''
    const made = await runCommand(['new', 'statuspage', '--from', requestId.slice(0, 8)], { dir })
    expect(made).toMatchObject({ code: 0, stderr: '' })
    expect(readFixture(dir, 'statuspage').request.payload).toEqual({ component: 'api', state: 'down' })
    expect(readFixture(dir, 'statuspage').request.headers).not.toHaveProperty('authorization')
  })

  test('the error for a delivery whose payload was not kept names the key that keeps payloads', async () => {
    const { dir, url } = await startInside()
    await post({ url, token: hookToken }, 'wake', { text: 'x' })
    const { code, stderr } = await runCommand(['new', 'mine', '--from', 'last'], { dir })
    expect([code, stderr]).toEqual([65, expect.stringContaining('unless "retain" of its mapping')])
  })

  test('hookloom new --from takes a bundled request by event or name, and lists the bundled requests if none fits', async () => {
    const dir = makeConfigDir()
    const event = async (name: string, word: string) =>
      runCommand(['new', name, '--from', 'github', '--event', word], { dir })
    expect(await event('one', 'release')).toMatchObject({ code: 0 })
    expect(readFixture(dir, 'one').request.headers['x-github-event']).toBe('release')
    expect(await event('two', 'review-submitted')).toMatchObject({ code: 0 })
    expect(readFixture(dir, 'two').request.headers['x-github-event']).toBe('pull_request_review')
    const unknown = await event('three', 'nonsense-at-all')
    expect(unknown).toMatchObject({ code: 64, stderr: expect.stringMatching(/release-published.*workflow-failed/) })
  })

  test('hookloom new --from with a missing file exits 64, and writes nothing', async () => {
    const dir = makeConfigDir()
    const { code, stderr } = await runCommand(['new', 'mine', '--from', './no-such.json'], { dir })
    expect([code, stderr]).toEqual([64, expect.stringContaining('./no-such.json cannot be read')])
    expect(readdirSync(dir)).toEqual(['hookloom.jsonc'])
  })
})

describe('hookloom test', () => {
  const mapped = { hooks: { mappings: [{ match: { path: 'x' }, transform: { module: 'x.ts' } }] } }
  const says = 'export default ({ payload }) => ({ message: `Hello ${payload.name}`, name: "N" })\n'
  const open = (source: string, fixture: object) =>
    makeConfigDir({
      config: mapped,
      files: { [`${root}/x.ts`]: source, [`${root}/x.fixtures/first.json`]: JSON.stringify(fixture) },
    })

  test.each([{}, { expect: {} }])(
    'hookloom test -u fills in the empty expectation %j, which fails without -u',
    async (empty) => {
      const dir = open(says, { request: { path: 'x', payload: { name: 'Ada' } }, ...empty })
      const before = await runCommand(['test'], { dir })
      expect(before).toMatchObject({ code: 70, stdout: expect.stringContaining('"hookloom test -u"') })
      expect(await runCommand(['test', '-u'], { dir })).toMatchObject({ code: 0 })
      expect(readFixture(dir, 'x')).toEqual({
        request: { path: 'x', payload: { name: 'Ada' } },
        expect: { decision: 'accept', actions: [{ kind: 'agent', message: 'Hello Ada', name: 'N' }] },
      })
      expect(await runCommand(['test'], { dir })).toMatchObject(passes)
    },
  )

  test('hookloom test shows where the code of a fixture throws, and -u leaves the fixture unchanged', async () => {
    const source = 'export default ({ payload }) => {\n  const deep = payload.a.b\n  return { message: deep }\n}\n'
    const dir = open(source, { request: { path: 'x', payload: {} }, expect: {} })
    for (const flags of [[], ['-u']]) {
      const { code, stdout } = await runCommand(['test', ...flags], { dir })
      expect(code).toBe(70)
      expect(stdout).toContain('x.ts:2')
      expect(stdout).toContain('const deep = payload.a.b')
      const [line] = (await runCommand(['test', '--json', ...flags], { dir })).json()
      expect(line).toMatchObject({
        fixture: 'first.json',
        ok: false,
        problem: { code: 'transform-failed', frame: expect.stringContaining('const deep') },
      })
    }
    expect(readFixture(dir, 'x').expect).toEqual({})
  })

  test('hookloom check shows where the code of a failing fixture throws', async () => {
    const dir = open('export default () => {\n  throw new Error("not yet")\n}\n', {
      request: { path: 'x', payload: {} },
      expect: { decision: 'accept' },
    })
    const { stdout } = await runCommand(['check'], { dir })
    expect(stdout).toContain('throw new Error("not yet")')
    writeFileSync(join(dir, root, 'x.ts'), says)
    expect((await runCommand(['check'], { dir })).code).toBe(0)
  })
})
