// Presets and verifiers of integrators on the command line: added, checked, and used by `send`.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/gateway/config/config.ts'
import { runCommand, runProcess } from './command.ts'
import { mainFile, makeConfigDir, toChildEnv, writeFiles } from './gateway.ts'
import { startInside } from './inside.ts'

const buildVerifier = (sign = true) => `
import { createHmac } from 'node:crypto'
import { defineVerifier } from 'hookloom'

const toProof = (body: Uint8Array, secret = '') => createHmac('sha512', secret).update(body).digest('base64url')

export default defineVerifier({
  scheme: 'acme',
  headers: ['x-acme'],
  verify: ({ headers, rawBody }, { secrets }) =>
    secrets.some((secret) => toProof(rawBody, secret) === headers['x-acme'])
      ? { ok: true }
      : { ok: false, fault: 'sender', reason: 'It is of other bytes.' },
  ${sign ? "sign: ({ rawBody }, { secrets: [secret] }) => ({ 'X-Acme': toProof(rawBody, secret) })," : ''}
})
`

const pack = `
import { definePreset } from 'hookloom'
import { z } from 'zod'

export default definePreset({
  name: 'weaver',
  title: 'Deployments become agent turns.',
  options: z.strictObject({ secret: z.string() }),
  setup: { key: { option: 'secret', from: 'sender' } },
  build: ({ secret }) => ({
    mappings: [{ match: { path: 'looms/weaver' }, verify: { scheme: 'acme', secret }, messageTemplate: '{{service}}' }],
  }),
})
`

const files = {
  'hooks/verifiers/acme.ts': buildVerifier(),
  'hooks/presets/weaver/preset.ts': pack,
  'hooks/presets/weaver/README.md': '# weaver\n\n## Set up\n\n1. Turn the wheel.\n',
  'hooks/presets/weaver/fixtures/deployed.json': JSON.stringify({
    request: { path: 'looms/weaver', headers: { 'content-type': 'application/json' }, payload: { service: 'billing' } },
    expect: { decision: 'accept' },
  }),
}

describe('custom presets', () => {
  test('a custom preset is added with its steps and a placeholder, which check reports until it is replaced', async () => {
    const dir = makeConfigDir({ files })
    const { code, stdout, stderr } = await runCommand(['add', 'preset', 'weaver'], { dir })
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain('/hooks/looms/weaver, at')
    expect(stdout).toContain('1. Turn the wheel.')
    expect(stdout).not.toMatch(/[\da-f]{64}/)
    expect(readFileSync(join(dir, '.env'), 'utf8')).toMatch(
      /^# a placeholder: .*\nWEAVER_WEBHOOK_SECRET=[\da-f]{64}\n$/,
    )
    const before = await runCommand(['check', '--json'], { dir })
    expect(before.code).toBe(0)
    expect(before.json()).toContainEqual(
      expect.objectContaining({
        name: 'placeholders',
        ok: false,
        detail: expect.stringContaining('hooks.presets[0].secret'),
      }),
    )
    expect(before.json()).toContainEqual(expect.objectContaining({ name: 'verifier acme', ok: true }))
    const after = await runCommand(['check', '--json'], { dir, env: { WEAVER_WEBHOOK_SECRET: 'shown by the sender' } })
    expect(after.json()).toContainEqual(expect.objectContaining({ name: 'placeholders', ok: true }))
    expect(loadConfig({ dir, env: {} }).config.hooks.presets).toHaveLength(1)
  })

  test('the fixtures of a custom preset are sent with the signature of its verifier', async () => {
    const { dir } = await startInside({
      config: { hooks: { presets: [{ name: 'weaver', secret: 'secret-of-the-loom' }] } },
      files,
    })
    expect((await runCommand(['send', 'weaver', 'deployed'], { dir })).stdout).toMatch(/^200 /)
    const unknown = await runCommand(['send', 'weaver', 'deploid'], { dir })
    expect([unknown.code, unknown.stderr]).toEqual([64, expect.stringContaining('Did you mean deployed?')])
  })

  test('hookloom check names the file of a broken custom preset, and the key of the configuration that names the preset', async () => {
    const dir = makeConfigDir({
      config: { hooks: { presets: ['weaver'], mappings: [{ match: { path: 'x' } }] } },
      files: { 'hooks/presets/weaver.ts': 'export default {' },
    })
    const { code, stdout } = await runCommand(['check'], { dir })
    expect([code, stdout]).toEqual([
      78,
      expect.stringContaining('hooks.presets[0]: hooks/presets/weaver.ts does not build'),
    ])
  })
})

describe('custom verifiers', () => {
  test('hookloom check shows why a custom verifier is broken', async () => {
    const config = {
      hooks: { mappings: [{ match: { path: 'acme' }, verify: { scheme: 'acme', secret: 'secret-of-the-loom' } }] },
    }
    const dir = makeConfigDir({ config, files: { 'hooks/verifiers/acme.ts': 'export default 7' } })
    const { code, json } = await runCommand(['check', '--json'], { dir })
    expect(code).toBe(70)
    const detail = expect.stringContaining('hooks/verifiers/acme.ts must export a verifier')
    expect(json()).toContainEqual(expect.objectContaining({ name: 'verifier acme', ok: false, detail }))
  })
})

describe('hookloom send to a signed mapping', () => {
  const mappings = [
    {
      id: 'table',
      match: { path: 'shared', payload: { kind: 'table' } },
      verify: { scheme: 'github', secret: 'secret-of-the-table' },
    },
    {
      id: 'code',
      match: { path: 'shared', payload: { kind: 'code' } },
      verify: { scheme: 'acme', secret: 'secret-of-the-code' },
    },
    { id: 'both', match: { path: 'both' }, verify: { scheme: 'stripe', secret: 'secret-of-the-loom', also: 'token' } },
    { id: 'theirs', match: { path: 'theirs' }, verify: { scheme: 'discord', publicKey: '0'.repeat(64) } },
    { id: 'open', match: { path: 'open' } },
  ]
  const payloads = {
    'table.json': '{"kind":"table"}',
    'code.json': '{"kind":"code"}',
  }

  test('hookloom send signs a body with the bundled or custom scheme of its mapping, or sends the token', async () => {
    const { dir } = await startInside({ config: { hooks: { mappings } }, files: { ...files, ...payloads } })
    const runSend = async (...args: string[]) => (await runCommand(['send', ...args, '--json'], { dir })).json()[0]
    expect(await runSend('shared', '--file', join(dir, 'table.json'))).toMatchObject({ status: 200 })
    expect(await runSend('shared', '--file', join(dir, 'code.json'))).toMatchObject({ status: 200 })
    expect(await runSend('both', join(dir, 'code.json'))).toMatchObject({ status: 200 })
    expect(await runSend('open', join(dir, 'code.json'))).toMatchObject({ status: 200 })
    const shell = `printf '{"kind":"table"}' | "${process.execPath}" "${mainFile}" send shared --file - --config-dir "${dir}"`
    expect(await runProcess('/bin/sh', ['-c', shell], { env: toChildEnv() })).toMatchObject({ code: 0 })
  })

  test('hookloom send says in one sentence why it cannot sign', async () => {
    const { dir } = await startInside({ config: { hooks: { mappings } }, files: { ...files, ...payloads } })
    const theirs = await runCommand(['send', 'theirs', join(dir, 'code.json')], { dir })
    expect([theirs.code, theirs.stderr]).toEqual([64, expect.stringContaining('only the sender has the key')])
    writeFiles(dir, { 'hooks/verifiers/acme.ts': buildVerifier(false) })
    const silent = await runCommand(['send', 'shared', join(dir, 'code.json')], { dir })
    expect([silent.code, silent.stderr]).toEqual([64, expect.stringContaining('"acme" has no sign()')])
    expect((await runCommand(['send', 'open'], { dir })).code).toBe(64)
  })
})
