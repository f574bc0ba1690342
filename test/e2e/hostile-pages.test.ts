// A page in the operator's browser: its requests open nothing and lock no client out.
import { beforeAll, describe, expect, test } from 'vitest'
import { readVerdict } from './answers.ts'
import { gatewayToken } from './gateway.ts'
import { type Inside, startInside } from './inside.ts'
import { bearer, type Headers, json, send } from './wire.ts'

let gateway: Inside
let host: string

beforeAll(async () => {
  const secret = 'whsec-0123456789abcdefghij'
  gateway = await startInside({
    config: {
      hooks: {
        mappings: [{ id: 'signed', match: { path: 'signed' }, verify: { scheme: 'github', secret }, deliver: false }],
      },
    },
  })
  host = `127.0.0.1:${gateway.port}`
})

const wake = JSON.stringify({ text: 'hello' })
const ask = (headers: Headers, parts: { method?: string; target?: string } = {}) =>
  send(gateway.port, { target: '/hooks/wake', headers: [['host', host], ...headers], body: wake, ...parts })
const splitWords = (text: string) => text.trim().split(/\s+/)

describe('requests from pages of another site', () => {
  test.each<[string, Headers]>([
    ['marked by sec-fetch-site', [['sec-fetch-site', 'cross-site']]],
    ['marked by Sec-Fetch-Site', [['Sec-Fetch-Site', 'Cross-Site']]],
    ...splitWords(`null http://evil.test https://evil.test http://localhost.evil.test http://127.0.0.1 https://127.0.0.1:1
      http://127.0.0.1:1@evil.test file:// chrome-extension://abcdef http://evil.test,http://127.0.0.1`).map(
      (origin): [string, Headers] => [`from ${origin}`, [['origin', origin]]],
    ),
    [
      'from two origins',
      [
        ['origin', 'http://127.0.0.1'],
        ['origin', 'http://evil.test'],
      ],
    ],
  ])('a request from a page is refused even with the token: %s', async (_, headers) => {
    expect(readVerdict(await ask([...headers, ...bearer, ...json]))).toBe('origin-denied')
    expect(readVerdict(await ask(headers, { target: '/hooks/signed' }))).toBe('origin-denied')
    expect(readVerdict(await ask(headers, { target: '/hooks/wake?token=x' }))).toBe('origin-denied')
    expect(readVerdict(await ask(headers, { method: 'OPTIONS' }))).toBe('origin-denied')
    expect(readVerdict(await ask(headers, { target: '/elsewhere' }))).toBe('hook-unknown')
  })

  test('forty requests from a page of another site do not lock out the user of the browser', async () => {
    for (let count = 0; count < 40; count++) {
      await ask(count % 2 === 0 ? [['sec-fetch-site', 'cross-site']] : [['origin', 'https://evil.test']])
    }
    expect(readVerdict(await ask([...bearer, ...json]))).toBe('accepted')
  })
})

describe('requests from the same site or without a browser', () => {
  test.each<[string, Headers]>([
    ['from the host that it was sent to', [['sec-fetch-site', 'same-origin']]],
    ['typed by a person', [['sec-fetch-site', 'none']]],
  ])('a browser request is accepted: %s', async (_, headers) => {
    expect(readVerdict(await ask([...headers, ...bearer, ...json]))).toBe('accepted')
  })

  test('a request with the origin of its host is accepted, whatever its scheme and its case', async () => {
    for (const origin of [`http://${host}`, `https://${host}`, `HTTP://${host}`]) {
      expect(readVerdict(await ask([['origin', origin], ...bearer, ...json]))).toBe('accepted')
    }
    for (const [name, origin] of [
      ['Hooks.Example.org', 'https://hooks.example.org'],
      ['hooks.example.org:443', 'https://hooks.example.org'],
      ['hooks.example.org:80', 'http://hooks.example.org'],
      ['[::1]:8790', 'http://[::1]:8790'],
    ] as const) {
      const headers: Headers = [['host', name], ['origin', origin], ...bearer, ...json]
      expect([origin, readVerdict(await send(gateway.port, { target: '/hooks/wake', headers, body: wake }))]).toEqual([
        origin,
        'accepted',
      ])
    }
  })
})

test('a request to the admin port from a page of another site is refused, and does not count as a guess', async () => {
  const port = Number(new URL(gateway.adminUrl).port)
  const site: Headers = [['sec-fetch-site', 'cross-site']]
  for (let count = 0; count < 30; count++) {
    expect(readVerdict(await send(port, { method: 'GET', target: '/api/refusals', headers: site }))).toBe(
      'origin-denied',
    )
  }
  const headers: Headers = [['authorization', `Bearer ${gatewayToken}`]]
  expect((await send(port, { method: 'GET', target: '/api/refusals', headers })).status).toBe(200)
})
