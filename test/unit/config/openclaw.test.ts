import { describe, expect, test } from 'vitest'
import { parseConfig } from '../../../src/config/config.ts'

const problems = (data: object) => parseConfig(JSON.stringify(data), {}).problems

describe('a configuration that was written for OpenClaw', () => {
  test('holds as far as its hooks go', () => {
    const mapping = {
      match: { path: 'gmail' },
      action: 'agent',
      wakeMode: 'now',
      name: 'Gmail',
      sessionKey: 'hook:gmail:{{messages[0].id}}',
      messageTemplate: 'New email from {{messages[0].from}}',
      deliver: true,
      channel: 'last',
    }
    const hooks = {
      enabled: true,
      token: 'a-token-of-the-hooks',
      path: '/hooks',
      defaultSessionKey: 'hook:ingress',
      allowRequestSessionKey: false,
      allowedSessionKeyPrefixes: ['hook:'],
      allowedAgentIds: ['hooks', 'main'],
      presets: ['gmail'],
      mappings: [mapping],
    }
    expect(problems({ hooks })).toEqual([])
  })

  test('is told of each key that is another one here, or none', () => {
    const hooks = {
      maxBodyBytes: 1,
      internal: {},
      mappings: [{ accountId: 'work' }],
      gmail: { label: 'INBOX', serve: {}, tailscale: {}, renewEveryMinutes: 1, hookUrl: '', pushToken: 'whsec' },
    }
    const gateway = { port: 1, auth: { token: 'x' } }
    const said = problems({ hooks, gateway, channels: { telegram: { botToken: 't', dmPolicy: 'x' } }, session: {} })
    expect(said).toContain('hooks.maxBodyBytes is server.maxBodyBytes here.')
    expect(said).toContain('hooks.gmail.label is hooks.gmail.labels here, a list such as ["INBOX"].')
    expect(said).toContain('gateway.port is server.port here.')
    expect(said.filter((line) => line.includes('Keys here') || line.includes('Did you mean'))).toEqual([])
    expect(said).toHaveLength(13)
  })

  test('leaves every other key to its nearest neighbour', () => {
    expect(problems({ hooks: { mapings: [] } })).toEqual(['hooks.mapings is an unknown key. Did you mean mappings?'])
  })
})
