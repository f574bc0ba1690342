// A secret that can be guessed is refused when the configuration is loaded, with its place.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { assemble } from '../../../../src/gateway/reload/assemble.ts'
import { parseConfig } from '../../../../src/gateway/config/config.ts'
import { ConfigSchema } from '../../../../src/gateway/config/keys.ts'
import { Problem } from '../../../../src/core/model/problem.ts'

let dir: string

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'hookloom-secrets-'))
  mkdirSync(join(dir, 'hooks', 'verifiers'), { recursive: true })
  for (const [name, min] of [
    ['acme', ''],
    ['tiny', 'minSecretBytes: 4, '],
  ]) {
    const text = `export default { scheme: '${name}', headers: [], ${min}verify: () => ({ ok: true }) }\n`
    writeFileSync(join(dir, 'hooks', 'verifiers', `${name}.ts`), text)
  }
})
afterAll(() => rmSync(dir, { recursive: true, force: true }))

/** The reasons why the configuration is refused, one on each line; an empty text if it is valid. */
async function findReasons(hooks: object): Promise<string> {
  try {
    await assemble(dir, ConfigSchema.parse({ hooks }))
    return ''
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'config-invalid') throw error
    return [error.message, error.frame ?? ''].join('\n').trim()
  }
}
const checkVerify = (verify: object) => findReasons({ mappings: [{ id: 'first' }, { match: { path: 'x' }, verify }] })
const at = 'hooks.mappings[1].verify.secret must have'

describe('secrets of mappings', () => {
  test('a secret of fewer than 16 bytes is refused with its place and its length, without its value', async () => {
    expect(await checkVerify({ scheme: 'github', secret: 'fifteen-letters' })).toBe(
      `${at} at least 16 bytes, found 15: it can be guessed. Make one with: openssl rand -hex 32, and set it at the sender too. If the sender makes the secret, copy all of it.`,
    )
    expect(await checkVerify({ scheme: 'github', secret: 'sixteen-letters!' })).toBe('')
    // a secret is measured in UTF-8
    expect(await checkVerify({ scheme: 'github', secret: 'ä'.repeat(8) })).toBe('')
  })

  test.each([
    ['standard-webhooks', 'whsec_A', 'base64', 0],
    ['svix', 'whsec_MTIzNDU2Nzg5MDEyMzQ1', 'base64', 15],
    ['gitlab-signing', 'MTIzNDU2Nzg5MDEyMzQ1', 'base64', 15],
    ['adyen', '00112233445566778899aabbccddee', 'hex', 15],
  ])('the length of a secret of %s is measured after decoding', async (scheme, secret, encoding, found) => {
    const why = await checkVerify({ scheme, secret })
    expect(why).toContain(`${at} at least 16 bytes after decoding (${encoding}), found ${found}`)
    expect(why).toContain(`openssl rand -${encoding} 32`)
    expect(why).not.toContain(secret)
  })

  test('the length of a secret of generic-hmac is measured in the encoding that it names', async () => {
    const generic = { scheme: 'generic-hmac', header: 'x-sig', secretEncoding: 'hex' }
    expect(await checkVerify({ ...generic, secret: 'ab'.repeat(15) })).toContain('after decoding (hex), found 15')
    expect(await checkVerify({ ...generic, secret: 'ab'.repeat(16) })).toBe('')
  })

  test.each([
    ['token', { header: 'x-token' }],
    ['gitlab-token', {}],
    ['telegram', {}],
    ['microsoft-graph', {}],
    ['hubspot-v1', {}],
    ['monday', {}],
    ['mailgun', {}],
    ['acme', {}],
  ])('a secret of %s needs 16 bytes', async (scheme, settings) => {
    expect(await checkVerify({ scheme, ...settings, secret: 'short' })).toContain(`${at} at least 16 bytes, found 5`)
    expect(await checkVerify({ scheme, ...settings, secret: 'long-enough-for-all' })).toBe('')
  })

  test('a secret made of user and password needs a password of 16 bytes', async () => {
    for (const scheme of ['basic', 'postmark']) {
      expect(await checkVerify({ scheme, secret: 'a-long-name-of-a-user:short' })).toContain(
        `${at} a password of at least 16 bytes, found 5`,
      )
      expect(await checkVerify({ scheme, secret: 'u:a-password-long-enough' })).toBe('')
    }
  })

  test('a secret that the sender makes may be as short as the sender makes it', async () => {
    expect(await checkVerify({ scheme: 'strava', secret: '120475', verifyToken: 'v' })).toBe('')
    expect(await checkVerify({ scheme: 'dropbox', secret: 'abcdefghijklmno' })).toBe('')
    expect(await checkVerify({ scheme: 'dropbox', secret: 'abcdefghijklmn' })).toContain('at least 15 bytes, found 14')
    expect(await checkVerify({ scheme: 'tiny', secret: 'four' })).toBe('')
    expect(await checkVerify({ scheme: 'tiny', secret: 'two' })).toContain('at least 4 bytes, found 3')
  })

  test('a mapping with two secrets is refused if one of them is short, with the place of that one', async () => {
    const why = await checkVerify({ scheme: 'github', secrets: ['s', 'long-enough-for-all'] })
    expect(why).toContain('hooks.mappings[1].verify.secrets[0] must have at least 16 bytes, found 1')
    expect(why).not.toContain('secrets[1]')
  })

  test('a short secret of a preset is reported once, with the place of its option', async () => {
    const presets = ['gmail', { name: 'github', secret: 'short' }, { name: 'stripe', secrets: ['other', 'more'] }]
    const lines = (await findReasons({ presets })).split('\n').map((line) => line.split(' must have ')[0])
    expect(lines).toEqual(['hooks.presets[1].secret', 'hooks.presets[2].secrets[0]', 'hooks.presets[2].secrets[1]'])
  })
})

describe('tokens of the operator', () => {
  const hookToken = 'a-token-of-the-hooks'
  const listIssues = (config: object) => parseConfig(JSON.stringify(config), {}).problems

  test('a token in hooks.token, hooks.tokens or gateway.token needs 16 bytes', () => {
    const why = 'must have at least 16 bytes, found 5: it can be guessed. Make one with: openssl rand -hex 32'
    expect(listIssues({ hooks: { enabled: true, token: 'short' } })).toEqual([`hooks.token ${why}`])
    expect(listIssues({ hooks: { enabled: true, tokens: [hookToken, 'short'] } })).toEqual([`hooks.tokens[1] ${why}`])
    expect(listIssues({ gateway: { token: 'short' } })).toEqual([`gateway.token ${why}`])
    expect(listIssues({ hooks: { enabled: true, token: hookToken }, gateway: { token: 'another-long-one' } })).toEqual(
      [],
    )
  })

  test('the secret that signs replies needs 16 bytes after decoding', () => {
    const checkSecret = (secret: string) =>
      listIssues({ channels: { webhook: { endpoints: { one: { url: 'https://x.test/', secret } } } } })
    expect(checkSecret('whsec_A')).toEqual([
      'channels.webhook.endpoints.one.secret must have at least 16 bytes after decoding (base64), found 0: it can be guessed. Make one with: openssl rand -base64 32',
    ])
    expect(checkSecret('short')).toEqual([expect.stringContaining('at least 16 bytes, found 5')])
    expect(checkSecret('whsec_MTIzNDU2Nzg5MDEyMzQ1Ng==')).toEqual([])
  })
})
