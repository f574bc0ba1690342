import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type FileFact, toFileFacts, toWarnings } from '../../src/loader/config/warnings.ts'
import { Config } from '../../src/model/config.ts'

const token = 'a-token-with-more-than-24-characters'
const tight = { enabled: true, token, defaultSessionKey: 'hook:inbox', allowedSessionKeyPrefixes: ['hook:'] }
type Parts = { hooks?: object; rest?: object; files?: FileFact[] }
const failing = ({ hooks = {}, rest = {}, files = [] }: Parts) =>
  toWarnings(Config.parse({ hooks: { ...tight, ...hooks }, ...rest }), { files }).filter(({ ok }) => !ok)
const names = (parts: Parts) => failing(parts).map(({ name }) => name)

describe('doctor', () => {
  test('finds nothing in a tight configuration, and lists every check that held', () => {
    expect(names({})).toEqual([])
    expect(toWarnings(Config.parse({ hooks: tight }), { files: [] }).map(({ name }) => name)).toEqual([
      'token-length',
      'token-reuse',
      'trusted-proxies',
      'session-key-prefixes',
      'default-session-key',
      'request-session-keys',
      'unsafe-content',
      'file-permissions',
    ])
  })

  test('warns of a token below 24 characters, and says how many it has', () => {
    expect(names({ hooks: { token: 'x'.repeat(24) } })).toEqual([])
    const [warning] = failing({ hooks: { token: 'x'.repeat(23) } })
    expect(warning).toMatchObject({ name: 'token-length', detail: expect.stringContaining('23 characters') })
  })

  test('warns of a token that is also another value, and shows where but not what', () => {
    const [warning] = failing({ hooks: { mappings: [{ to: token }] } })
    expect(warning?.detail).toContain('hooks.mappings[0].to')
    expect(warning?.detail).not.toContain(token)
  })

  test('warns of a public address without trusted proxies', () => {
    for (const host of ['127.0.0.1', 'localhost', '::1', '127.1.2.3'])
      expect(names({ rest: { server: { host } } })).toEqual([])
    for (const host of ['0.0.0.0', '::', '10.0.0.1', '127.0.0.1.example.com']) {
      expect(names({ rest: { server: { host } } })).toEqual(['trusted-proxies'])
    }
    expect(names({ rest: { server: { host: '0.0.0.0', trustedProxies: ['10.0.0.1'] } } })).toEqual([])
  })

  test('warns of open session keys', () => {
    expect(names({ hooks: { allowedSessionKeyPrefixes: undefined } })).toEqual(['session-key-prefixes'])
    expect(names({ hooks: { allowedSessionKeyPrefixes: [] } })).toEqual(['session-key-prefixes'])
    expect(names({ hooks: { defaultSessionKey: undefined } })).toEqual(['default-session-key'])
    expect(names({ hooks: { allowRequestSessionKey: true } })).toEqual(['request-session-keys'])
  })

  test('warns of every place that opts out of the boundary, presets included', () => {
    const open = { allowUnsafeExternalContent: true }
    const [warning] = failing({ hooks: { gmail: open, mappings: [{}, open], presets: [{ name: 'gmail', ...open }] } })
    for (const place of ['hooks.gmail.', 'hooks.mappings[1].', 'hooks.presets[0].'])
      expect(warning?.detail).toContain(place)
    expect(warning?.detail).not.toContain('mappings[0]')
  })

  test('warns of configuration files that others can read or write', () => {
    expect(names({ files: [{ file: '/c/.env', mode: 0o600 }] })).toEqual([])
    for (const mode of [0o644, 0o620, 0o602]) {
      const [warning] = failing({ files: [{ file: '/c/.env', mode }] })
      expect(warning?.detail).toContain(`.env (mode ${mode.toString(8)})`)
    }
  })
})

test('facts are taken of the files that are there', () => {
  const dir = mkdtempSync(join(tmpdir(), 'hookloom-facts-'))
  const file = join(dir, 'a')
  writeFileSync(file, '')
  chmodSync(file, 0o640)
  expect(toFileFacts([file, join(dir, 'b')], 'linux')).toEqual([{ file, mode: 0o640 }])
  expect(toFileFacts([file], 'win32')).toEqual([])
  rmSync(dir, { recursive: true })
})
