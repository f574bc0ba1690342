import { describe, expect, test } from 'vitest'
import { renderConfigSchema } from '../../../src/gateway/config/schema.ts'
import { parseConfig } from '../../../src/gateway/config/config.ts'
import { classifySecretName, listConfigSecrets } from '../../../src/model/config/secrets.ts'

function findSecrets(config: object, env: Record<string, string> = {}): string[] {
  const parsed = parseConfig(JSON.stringify(config), env)
  if (parsed.config === undefined) throw new Error(parsed.problems.join('\n'))
  return listConfigSecrets(parsed.config, [])
}

/** Names of keys in the schema whose values are texts or lists of texts, at any depth. */
function findNames(schema: unknown, name = ''): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  if (Array.isArray(schema)) return schema.flatMap((item) => findNames(item, name))
  const { properties, ...rest } = schema as { properties?: object; type?: unknown }
  const named = Object.entries(properties ?? {}).flatMap(([key, item]) => findNames(item, key))
  const own = rest.type === 'string' ? [name] : []
  return [...own, ...named, ...Object.values(rest).flatMap((item) => findNames(item, name))]
}

describe('listConfigSecrets', () => {
  test('each key of the schema whose name suggests a secret is classified as a secret, except the keys in the second list', () => {
    const names = [...new Set(findNames(JSON.parse(renderConfigSchema())))]
    const sounding = names.filter((name) => /token|secret|password|key|credential|auth/i.test(name))
    const secret = sounding.filter((name) => classifySecretName(name) !== 'no').toSorted()
    expect(secret.join(' ')).toBe(
      'accessToken apiKey appPassword botToken oauthToken password privateKey secret secrets token tokens verifyToken',
    )
    const others = sounding.filter((name) => !secret.includes(name))
    expect(others.toSorted().join(' ')).toBe(
      'allowedSessionKeyPrefixes defaultSessionKey key oauthAuth publicKey secretEncoding serviceAccountKey sessionKey',
    )
  })

  test('variables that are passed on to transforms are secrets, except plain words and URLs without a secret', () => {
    const env = {
      SHOP_ID: 'a7-shop-001-x9912',
      SHOP_PASSWORD: 'letmein',
      STAGE: 'production',
      API_BASE: 'https://api.example/v1',
      DATABASE: 'postgres://ada:s3cret@db.example/app',
      OTHER: 'not-passed-on-0123456',
    }
    const names = ['SHOP_ID', 'SHOP_PASSWORD', 'STAGE', 'API_BASE', 'DATABASE', 'UNSET']
    expect(findSecrets({ hooks: { transforms: { env: names } } }, env)).toEqual([
      env.SHOP_ID,
      env.SHOP_PASSWORD,
      env.DATABASE,
      's3cret',
    ])
  })

  test('tokens, keys, passwords, headers and secret URLs are listed as secrets, but not the URL of a model API', () => {
    const found = findSecrets({
      gateway: { token: 'gateway-token-0123456789' },
      hooks: {
        enabled: true,
        tokens: ['hook-token-one-0123456789', 'hook-token-two-0123456789'],
        mappings: [
          { match: { path: 'a' }, verify: { scheme: 'github', secret: 'mapping-secret-0123' }, messageTemplate: 'x' },
          {
            match: { path: 'b' },
            verify: { scheme: 'basic', secret: 'ada:basic-password-0123' },
            messageTemplate: 'x',
          },
        ],
      },
      models: {
        providers: {
          local: {
            kind: 'openai-compatible',
            baseUrl: 'http://127.0.0.1:11434/v1',
            apiKey: 'model-key-0123',
            headers: { authorization: 'Bearer header-token-0123', 'x-team': 'team-key-0123' },
          },
        },
      },
      channels: {
        telegram: { botToken: '42:telegram-token' },
        webhook: { endpoints: { ops: { url: 'https://a.example/in/url-token-0123', secret: 'webhook-secret-0123' } } },
      },
      store: { url: 'postgres://ada:p%40ssword-0123@db.example/app' },
    })
    expect(found).toEqual(
      expect.arrayContaining([
        'gateway-token-0123456789',
        'hook-token-one-0123456789',
        'hook-token-two-0123456789',
        'mapping-secret-0123',
        'basic-password-0123',
        'model-key-0123',
        'header-token-0123',
        'team-key-0123',
        '42:telegram-token',
        'telegram-token',
        'https://a.example/in/url-token-0123',
        'webhook-secret-0123',
        'postgres://ada:p%40ssword-0123@db.example/app',
        'p%40ssword-0123',
        'p@ssword-0123',
      ]),
    )
    expect(found).not.toContain('http://127.0.0.1:11434/v1')
    expect(found.filter((one) => one.startsWith('https://oauth2'))).toEqual([])
  })

  test.each([
    ['x-github-event', 'pull_request'],
    ['x-gitlab-event', 'Merge Request Hook'],
    ['x-event-key', 'repo:refs_changed'],
    ['x-shopify-topic', 'orders/create'],
    ['content-type', 'application/cloudevents+json'],
    ['x-api-version', '2026-01-31'],
    ['x-environment', 'production'],
    ['ce-type', 'com.example.order.paid.v2'],
  ])('the value of the condition %s: %s is no secret', (name, value) => {
    const conditions = [
      { headers: { [name]: value } },
      { headers: { [name]: [value] } },
      { any: [{ headers: { [name]: value } }] },
    ]
    for (const match of conditions) {
      expect(findSecrets({ hooks: { mappings: [{ match: { path: 'a', ...match }, messageTemplate: 'x' }] } })).toEqual(
        [],
      )
    }
    const mapping = { match: { path: 'a' }, flow: { key: '{{id}}', cancelOn: { headers: { [name]: value } } } }
    expect(findSecrets({ hooks: { mappings: [{ ...mapping, messageTemplate: 'x' }] } })).toEqual([])
  })

  test.each([
    ['x-webhook-token', 'tuesday'],
    ['x-webhook-key', 'tuesday'],
    ['x-hook-passphrase', 'correct-horse-battery-staple'],
    ['x-sig', 'tuesday'],
    ['authorization', 'Basic YWRhOmJhc2lj'],
    ['x-shared', '7f3a9c1e55d0'],
    ['x-sender', 'kQ3vX9wLm2pR'],
    ['x-sender', 'qwjdkxzmvbnqwplkjhgfdsaz'],
  ])('the value of the condition %s: %s is a secret, even in a list or under "not"', (name, value) => {
    for (const wanted of [value, [value], { not: value }]) {
      const mappings = [
        { match: { path: 'a', headers: { [name]: wanted } }, messageTemplate: 'x' },
        { match: { path: 'a' }, flow: { cancelOn: { headers: { [name]: wanted } } }, messageTemplate: 'x' },
      ]
      // the text of an invalid configuration is shown too, and no condition may read a credential
      for (const mapping of mappings) {
        expect(listConfigSecrets({ hooks: { mappings: [mapping] } }, [])).toContain(value)
      }
    }
  })

  test('an empty text is no secret: an empty password of a URL and an empty text after a prefix are not listed', () => {
    expect(listConfigSecrets({ store: { url: 'postgres://user:@db.example.com/hookloom' } }, [])).toEqual([
      'postgres://user:@db.example.com/hookloom',
    ])
    expect(listConfigSecrets({ secret: 'ada:', token: '' }, [])).toEqual(['ada:'])
  })

  test('a value that came from a variable is a secret under any key, without the text around it', () => {
    const mapping = { match: { path: 'a' }, messageTemplate: 'to ${DOOR_CODE} now' }
    expect(findSecrets({ hooks: { mappings: [mapping] } }, { DOOR_CODE: 'door-0123', OTHER: 'other-0123' })).toEqual([
      'door-0123',
    ])
  })
})
