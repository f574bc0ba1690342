// Code of integrators: a verifier, a preset in a file, a preset from npm. Signed requests over real HTTP, and saves that go live.
import { createHash, createHmac } from 'node:crypto'
import { chmodSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Log } from '../../src/base/log.ts'
import { readBlock } from '../pages.ts'
import { gatewayToken, makeConfigDir, writeFiles } from './gateway.ts'
import { type Inside, readStore, startInside } from './inside.ts'

const secret = 'shuttle-and-loom-0123456789'
const body = '{"event":"deploy","service":"billing"}'

/** A verifier of HMAC-SHA512 over the hash of the body, which no row of the table of schemes describes. */
const buildAcmeVerifier = (reason = 'The signature is of other bytes.') => `
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { defineVerifier } from 'hookloom'

export default defineVerifier({
  scheme: 'acme',
  headers: ['X-Acme-Proof'],
  verify({ headers, rawBody }, { secrets }) {
    const given = Buffer.from(headers['x-acme-proof'] ?? '', 'hex')
    const hash = createHash('sha256').update(rawBody).digest()
    const holds = secrets.some((secret) => timingSafeEqual(given, createHmac('sha512', secret).update(hash).digest()))
    return holds ? { ok: true } : { ok: false, fault: 'sender', reason: ${JSON.stringify(reason)} }
  },
})
`

function sign(text: string, key = secret): string {
  return createHmac('sha512', key).update(createHash('sha256').update(text).digest()).digest('hex')
}

const buildAcmePack = (says: string) => `
import { definePreset } from 'hookloom'
import { z } from 'zod'

export default definePreset({
  name: 'weaver',
  title: 'Deployments become agent turns.',
  options: z.strictObject({ secret: z.string() }),
  build: ({ secret }) => ({
    mappings: [{ match: { path: 'weaver' }, verify: { scheme: 'acme', secret }, messageTemplate: ${JSON.stringify(says)} }],
  }),
})
`

const packFromNpm = {
  'node_modules/@acme/pack/package.json': JSON.stringify({
    name: '@acme/pack',
    version: '1.0.0',
    type: 'module',
    exports: { '.': { import: './dist/preset.mjs' } },
  }),
  'node_modules/@acme/pack/dist/preset.mjs': `
    import { definePreset } from 'hookloom/define'
    import { createHmac } from 'node:crypto'
    import { path } from 'acme-paths'
    const toProof = (body, secret) => createHmac('md5', secret).update(body).digest('hex')
    export default definePreset({
      name: 'acme-pack',
      title: 'Whatever comes becomes an agent turn.',
      options: { safeParse: (options) => ({ success: true, data: options }) },
      verifiers: [{
        scheme: 'acme-md5',
        headers: ['x-md5'],
        verify: ({ headers, rawBody }, { secrets: [secret = ''] }) =>
          headers['x-md5'] === toProof(rawBody, secret) ? { ok: true } : { ok: false, fault: 'sender', reason: 'no' },
        sign: ({ rawBody }, { secrets: [secret = ''] }) => ({ 'x-md5': toProof(rawBody, secret) }),
      }],
      build: ({ secret }) => ({
        mappings: [{ match: { path }, verify: { scheme: 'acme-md5', secret }, messageTemplate: '{{event}} of {{service}}' }],
      }),
    })`,
  'node_modules/acme-paths/package.json': JSON.stringify({ name: 'acme-paths', version: '1.0.0', main: 'index.js' }),
  'node_modules/acme-paths/index.js': `exports.path = 'acme-pack'`,
}

/** A log whose lines a test can wait for. */
function createListening(): {
  log: Log
  waitForLine(pattern: RegExp, from?: number): Promise<string>
  readonly count: number
} {
  const lines: string[] = []
  const listeners = new Set<() => void>()
  const add = (_fields: object, text: string) => {
    lines.push(text)
    for (const listener of listeners) listener()
  }
  return {
    log: { debug: add, info: add, warn: add, error: add },
    waitForLine: (pattern, from = 0) =>
      new Promise((found) => {
        const look = () => {
          const line = lines.slice(from).find((text) => pattern.test(text))
          if (line === undefined) return
          listeners.delete(look)
          found(line)
        }
        listeners.add(look)
        look()
      }),
    get count() {
      return lines.length
    },
  }
}

async function post({ url }: Inside, hook: string, headers: Record<string, string>, text = body) {
  const answer = await fetch(`${url}/${hook}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: text,
  })
  return { status: answer.status, text: await answer.text() }
}

const toStatus = async (...given: Parameters<typeof post>) => (await post(...given)).status

async function readMessages({ dir }: Inside): Promise<string[]> {
  const records = await readStore(dir, (store) => store.deliveries({ limit: 50 }))
  return records.flatMap(({ jobs }) =>
    jobs.flatMap(({ planned }) => (planned.kind === 'agent' ? planned.action.message : [])),
  )
}

async function readReasons({ adminUrl }: Inside): Promise<string> {
  const headers = { authorization: 'Bearer gateway-secret-0123456789abcdefgh' }
  return (await fetch(`${adminUrl}/api/refusals`, { headers })).text()
}

describe('verifiers of integrators', () => {
  const config = {
    hooks: { mappings: [{ match: { path: 'acme' }, verify: { scheme: 'acme', secret } }, { match: { path: 'open' } }] },
  }
  const file = 'hooks/verifiers/acme.ts'

  test('a verifier accepts a signed request and refuses one with another byte or another key', async () => {
    const gateway = await startInside({ config, files: { [file]: buildAcmeVerifier() } })
    const proof = { 'x-acme-proof': sign(body) }
    expect(await toStatus(gateway, 'acme', proof)).toBe(200)
    expect(await toStatus(gateway, 'acme', proof, body.replace('billing', 'Billing'))).toBe(401)
    expect(await toStatus(gateway, 'acme', { 'x-acme-proof': sign(body, 'another') })).toBe(401)
    expect(await toStatus(gateway, 'acme', {})).toBe(401)
    // the comparison throws if the lengths differ
    expect(await toStatus(gateway, 'acme', { 'x-acme-proof': 'ab' })).toBe(401)
    expect(await readReasons(gateway)).toMatch(/threw a RangeError at acme\.ts:\d+/)
    expect(await readMessages(gateway)).toHaveLength(1)
  })

  test('a verifier reloads when it is saved, and broken code leaves the last good one running', async () => {
    const { log, waitForLine } = createListening()
    const gateway = await startInside({ config, files: { [file]: buildAcmeVerifier() }, log })
    const sendForged = () => toStatus(gateway, 'acme', { 'x-acme-proof': sign('other') })
    expect(await sendForged()).toBe(401)
    writeFiles(gateway.dir, { [file]: buildAcmeVerifier('The weft is wrong.') })
    await waitForLine(/^hooks\/verifiers\/acme\.ts is live/)
    expect(await sendForged()).toBe(401)
    expect(await readReasons(gateway)).toContain('The weft is wrong.')
    writeFiles(gateway.dir, { [file]: 'export default {' })
    expect(await waitForLine(/does not build/)).toMatch(
      /^hooks\/verifiers\/acme\.ts does not build at acme\.ts:1: .* The last good version keeps serving\.$/,
    )
    expect(await toStatus(gateway, 'acme', { 'x-acme-proof': sign(body) })).toBe(200)
    expect(await sendForged()).toBe(401)
    rmSync(join(gateway.dir, file))
    await waitForLine(/acme\.ts does not exist/)
    expect(await toStatus(gateway, 'acme', { 'x-acme-proof': sign(body) })).toBe(200)
  })

  test.each([
    ['is missing', {}],
    ['does not build', { [file]: 'export default {' }],
    ['throws as it loads', { [file]: 'throw new Error("no")' }],
    ['exports no verifier', { [file]: 'export default { scheme: "acme" }' }],
    ['does not have the name of its file', { [file]: buildAcmeVerifier().replace("'acme'", "'amce'") }],
  ])('a request to a verifier that %s is answered 503, and the rest of the gateway works', async (_, files) => {
    const gateway = await startInside({ config, files })
    const refused = await post(gateway, 'acme', { 'x-acme-proof': sign(body) })
    expect([refused.status, JSON.parse(refused.text).code]).toEqual([503, 'proof-unavailable'])
    const token = { authorization: 'Bearer hook-secret-0123456789abcdefghij' }
    expect(await toStatus(gateway, 'acme', token)).toBe(503)
    expect(await toStatus(gateway, 'open', token)).toBe(200)
    const operator = { headers: { authorization: `Bearer ${gatewayToken}` } }
    const ready = await fetch(`${gateway.adminUrl}/readyz`, operator)
    expect(await ready.json()).toMatchObject({ degraded: true, problems: [{ code: 'verifier-failed' }] })
    expect(await readReasons(gateway)).toContain('hooks/verifiers/acme.ts')
  })

  test('a broken verifier becomes live as soon as it is fixed', async () => {
    const { log, waitForLine } = createListening()
    const gateway = await startInside({ config, files: { [file]: 'export default {' }, log })
    expect(await toStatus(gateway, 'acme', { 'x-acme-proof': sign(body) })).toBe(503)
    writeFiles(gateway.dir, { [file]: buildAcmeVerifier() })
    await waitForLine(/^hooks\/verifiers\/acme\.ts is live/)
    expect(await toStatus(gateway, 'acme', { 'x-acme-proof': sign(body) })).toBe(200)
  })

  test.each([
    [
      'has the name of a built-in scheme',
      { 'hooks/verifiers/github.ts': buildAcmeVerifier() },
      /hooks\/verifiers\/github has the name of the built-in/,
    ],
    [
      'is a link to a folder that others can write',
      {},
      /hooks\/verifiers\/acme\.ts is a link to .*, which is not followed/,
    ],
  ])('a verifier that %s is an error of the configuration', async (what, files, said) => {
    const dir = makeConfigDir({
      config,
      files: { 'elsewhere.ts': buildAcmeVerifier(), 'hooks/verifiers/x.json': '{}', ...files },
    })
    if (what.startsWith('is a link')) {
      symlinkSync(join(dir, 'elsewhere.ts'), join(dir, file))
      chmodSync(dir, 0o777)
    }
    await expect(startInside({ dir })).rejects.toThrow(said)
  })
})

describe('presets of integrators', () => {
  const config = {
    hooks: {
      presets: [
        { name: 'weaver', secret },
        { name: '@acme/pack', secret },
      ],
    },
  }
  const files = {
    'hooks/verifiers/acme.ts': buildAcmeVerifier(),
    'hooks/presets/weaver/preset.ts': buildAcmePack('{{service}} is out'),
    ...packFromNpm,
  }

  test('a preset is found by its name in hooks/presets and in node_modules, with its verifier', async () => {
    const gateway = await startInside({ config, files })
    const md5 = createHmac('md5', secret).update(body).digest('hex')
    expect(await toStatus(gateway, 'weaver', { 'x-acme-proof': sign(body) })).toBe(200)
    expect(await toStatus(gateway, 'acme-pack', { 'x-md5': md5 })).toBe(200)
    expect(await toStatus(gateway, 'weaver', { 'x-acme-proof': sign(body) }, `${body} `)).toBe(401)
    expect(await toStatus(gateway, 'acme-pack', { 'x-md5': md5 }, `${body} `)).toBe(401)
    expect(new Set(await readMessages(gateway))).toEqual(new Set(['billing is out', ' of billing']))
  })

  test('a preset reloads when it is saved, and broken code leaves the last good one running', async () => {
    const { log, waitForLine } = createListening()
    const gateway = await startInside({ config, files, log })
    const file = 'hooks/presets/weaver/preset.ts'
    const deliver = () => toStatus(gateway, 'weaver', { 'x-acme-proof': sign(body) })
    writeFiles(gateway.dir, { [file]: buildAcmePack('{{service}} went live') })
    await waitForLine(/^hooks\/presets\/weaver\/preset\.ts is live/)
    expect(await deliver()).toBe(200)
    expect(await readMessages(gateway)).toEqual(['billing went live'])
    for (const [code, said] of [
      [
        'export default {',
        /^hookloom\.jsonc:\d+:\d+ hooks\.presets\[0\]: hooks\/presets\/weaver\/preset\.ts does not build at weaver\/preset\.ts:1/,
      ],
      [buildAcmePack('{{'), /messageTemplate/],
      [buildAcmePack('x').replace('mappings: [', 'mappings: [7, '), / hooks\.presets\[0\]: the preset "weaver"/],
      [
        buildAcmePack('x').replace('build: ({ secret }) =>', 'build: ({ secret }) => secret.x.y &&'),
        /threw a TypeError at weaver\/preset\.ts:/,
      ],
      ['export default { name: "weaver" }', /must export a preset/],
    ] as const) {
      writeFiles(gateway.dir, { [file]: code })
      expect(await waitForLine(said)).toContain('The last good configuration keeps serving.')
      expect(await deliver()).toBe(200)
    }
    expect(await readMessages(gateway)).toEqual(Array.from({ length: 6 }, () => 'billing went live'))
  })

  test.each([
    ['nowhere', {}, /hooks\.presets\[0\]: there is no preset "weaver"\. .*hooks\/presets\/weaver\.ts/],
    [
      'in a file that does not build',
      { 'hooks/presets/weaver.ts': 'export default {' },
      /hooks\.presets\[0\]: hooks\/presets\/weaver\.ts does not build/,
    ],
    [
      'under another name',
      { 'hooks/presets/weaver.ts': buildAcmePack('x').replace("'weaver'", "'wever'") },
      /must define the preset "weaver"/,
    ],
    [
      'outside of its folder',
      { 'x.ts': '', 'hooks/presets/weaver.ts': 'import "../../x.ts"' },
      /is outside the hooks\/presets directory/,
    ],
  ])('a preset that is found %s is an error of the configuration', async (_, given, said) => {
    const dir = makeConfigDir({ config: { hooks: { presets: ['weaver'] } }, files: given })
    await expect(startInside({ dir })).rejects.toThrow(said)
  })

  test('a preset with the name of a bundled one, of a built-in scheme, or of another verifier is refused', async () => {
    const github = makeConfigDir({
      config: { hooks: { presets: ['github'] } },
      files: { 'hooks/presets/github.ts': buildAcmePack('x') },
    })
    await expect(startInside({ dir: github })).rejects.toThrow('"github" is a bundled preset')
    const buildPack = (scheme: string) =>
      buildAcmePack('x').replace(
        'build:',
        `verifiers: [{ scheme: '${scheme}', headers: [], verify: () => ({ ok: true }) }],\n  build:`,
      )
    const toDir = (scheme: string) =>
      makeConfigDir({
        config: { hooks: { presets: [{ name: 'weaver', secret }] } },
        files: { 'hooks/verifiers/acme.ts': buildAcmeVerifier(), 'hooks/presets/weaver.ts': buildPack(scheme) },
      })
    await expect(startInside({ dir: toDir('stripe') })).rejects.toThrow('the built-in scheme "stripe"')
    await expect(startInside({ dir: toDir('acme') })).rejects.toThrow('Two verifiers have the scheme "acme"')
  })
})

test('the verifier and the preset in the pages work as printed', async () => {
  const verifier = readBlock('src/gateway/proofs/verifiers/README.md', 'ts', 'defineVerifier')
  const pack = readBlock('presets/README.md', 'ts', 'definePreset')
  const config = { hooks: { presets: [{ name: 'weaver', secret }] } }
  const gateway = await startInside({
    config,
    files: { 'hooks/verifiers/acme.ts': verifier, 'hooks/presets/weaver.ts': pack },
  })
  expect(await toStatus(gateway, 'weaver', { 'x-acme-proof': sign(body) })).toBe(200)
  expect(await toStatus(gateway, 'weaver', { 'x-acme-proof': sign(body) }, `${body} `)).toBe(401)
})
