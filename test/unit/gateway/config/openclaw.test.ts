import { describe, expect, test } from 'vitest'
import { parseConfig } from '../../../../src/gateway/config/config.ts'

const check = (data: object) => parseConfig(JSON.stringify(data), {}).problems

describe('keys of OpenClaw', () => {
  test('the hooks section of an OpenClaw configuration is valid', () => {
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
    expect(check({ hooks })).toEqual([])
  })

  test('the error of an OpenClaw key names its counterpart, or says that there is none', () => {
    const hooks = {
      maxBodyBytes: 1,
      internal: {},
      mappings: [{ accountId: 'work' }],
      gmail: { label: 'INBOX', serve: {}, tailscale: {}, renewEveryMinutes: 1, hookUrl: '', pushToken: 'whsec' },
    }
    const gateway = { port: 1, auth: { token: 'x' } }
    const said = check({ hooks, gateway, channels: { telegram: { botToken: 't', dmPolicy: 'x' } }, session: {} })
    expect(said).toContain('hooks.maxBodyBytes is server.maxBodyBytes here.')
    expect(said).toContain('hooks.gmail.label is hooks.gmail.labels here, a list such as ["INBOX"].')
    expect(said).toContain('gateway.port is server.port here.')
    expect(said.filter((line) => line.includes('Keys here') || line.includes('Did you mean'))).toEqual([])
    expect(said).toHaveLength(13)
  })

  test('the error of a key that neither OpenClaw nor Hookloom has suggests the nearest known key', () => {
    expect(check({ hooks: { mapings: [] } })).toEqual(['hooks.mapings is an unknown key. Did you mean mappings?'])
  })
})
