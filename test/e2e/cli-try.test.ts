// A template and conditions that are not saved, tried with kept requests: the command, and the admin port that it asks.
import { beforeAll, expect, test } from 'vitest'
import { signRequest } from '../../src/gateway/proofs/verifiers/sign.ts'
import { runCommand } from './command.ts'
import { describeEngines } from './engines.ts'
import { gatewayToken, hookToken, makeConfigDir, post } from './gateway.ts'
import type { Inside } from './inside.ts'
import { builtInSenders } from '../../src/gateway/built-in.ts'

const secret = 'it-is-a-long-secret-of-github'
const mappings = [
  { id: 'orders', match: { path: 'orders' }, messageTemplate: 'old', deliver: false },
  { id: 'notes', match: { path: 'notes' }, accept: ['text'], messageTemplate: '{{body}}', deliver: false },
  {
    id: 'github',
    match: { path: 'github' },
    verify: { scheme: 'github', secret },
    messageTemplate: 'x',
    deliver: false,
  },
]

describeEngines('hookloom try', (start) => {
  let gateway: Inside
  const runTry = (...args: string[]) => runCommand(['try', ...args], gateway)

  beforeAll(async () => {
    gateway = await start({ config: { hooks: { retain: 50, mappings } } })
    const to = { url: gateway.url, token: hookToken }
    await post(to, 'orders', { id: 1, total: 5, state: 'open', name: 'Ada\u202E', by: { name: 'Ada' } })
    await post(to, 'orders', { id: 2, total: 500, state: 'open', name: 'Bob', by: { name: 'Bob' }, list: ['{{id}}'] })
    await post(to, 'orders', { id: 3, total: 500, state: 'closed' }, { 'x-kind': 'late' })
    const body = JSON.stringify({ action: 'opened', number: 7 })
    const signed = { 'content-type': 'application/json', 'x-github-event': 'pull_request' }
    const request = { body: Buffer.from(body), now: Date.now(), method: 'POST', url: '/hooks/github', headers: signed }
    const headers = { ...signed, ...signRequest({ scheme: 'github', secret }, request, { senders: builtInSenders }) }
    await fetch(`${gateway.url}/github`, { method: 'POST', headers, body })
    const text = { authorization: `Bearer ${hookToken}`, 'content-type': 'text/plain' }
    await fetch(`${gateway.url}/notes`, { method: 'POST', headers: text, body: 'plain' })
  })

  test('hookloom try shows which kept requests match, the message of each, and why the others do not match', async () => {
    const ran = await runTry('{{name | default: "nobody"}}: {{id}} {{list}}', '--match', 'payload.total=500', '--json')
    expect(ran).toMatchObject({ code: 0, stderr: '' })
    expect(ran.json().filter(({ hook }) => hook === 'orders')).toMatchObject([
      { matches: true, message: 'nobody: 3 ', takenBy: 'orders', problem: null },
      { matches: true, message: 'Bob: 2 ["{{id}}"]' },
      { matches: false, message: null, why: expect.stringContaining('total') },
    ])
    const shown = await runTry('{{name}}', '--match', 'payload.state=open', '--hook', 'orders')
    expect(shown.stdout).toContain('2 of 3 kept requests match.')
    expect(shown.stdout).toContain(
      '{"match":{"path":"orders","payload":{"state":"open"}},"messageTemplate":"{{name}}"}',
    )
    expect(shown.stdout).not.toContain('\u202E')
  })

  test('hookloom try --match takes conditions as text and as JSON, and all of them must be true', async () => {
    const listMatches = async (...match: string[]) => {
      const ran = await runTry('{{id}}', ...match.flatMap((one) => ['--match', one]), '--json')
      return ran.json().flatMap(({ matches, message }) => (matches === true ? [message] : []))
    }
    expect(await listMatches('payload.total=500', 'payload.state=open')).toEqual(['2'])
    expect(await listMatches('{"payload": {"total": {"lt": 100}}}')).toEqual(['1'])
    expect(await listMatches('headers.x-kind=late')).toEqual(['3'])
    expect(await listMatches('path=orders', '{"payload": {"state": {"not": "closed"}}}')).toEqual(['2', '1'])
  })

  test('hookloom try uses signed and plain-text requests as they arrived, with their sender and event', async () => {
    const signed = await runTry(
      '{{event}} {{number}} {{source}}',
      '--match',
      'event=pull_request',
      '--last',
      '2',
      '--json',
    )
    expect(signed.json()).toMatchObject([
      { hook: 'notes', matches: false },
      { hook: 'github', source: 'github', matches: true, message: 'pull_request 7 github' },
    ])
    expect((await runTry('{{body}}', '--hook', 'notes', '--json')).json()).toMatchObject([{ message: 'plain' }])
  })

  test('hookloom try warns about a path that matching requests do not have, and names a similar one', async () => {
    const ran = await runTry('{{by.nmae}} {{id}} {{payload.total}} {{event}}', '--match', 'payload.state=open')
    expect(ran.stderr).toContain('{{by.nmae}} is empty in 2 of them. Did you mean {{by.name}}?')
    expect(ran.stderr).not.toContain('total')
  })

  test('the mapping that hookloom try prints has the path of the matching requests, and a note says what it still needs', async () => {
    const signed = (await runTry('{{number}}', '--match', 'event=pull_request')).stdout
    expect(signed).toContain('{"match":{"path":"github","event":"pull_request"},"messageTemplate":"{{number}}"}')
    expect(signed).toMatch(/^Put it before the mappings/m)
    expect(signed).toMatch(/^Copy "verify" from "github": /m)
    const several = (await runTry('x')).stdout
    expect(several).toContain('It has no "path"')
  })

  test('hookloom try refuses an invalid template or condition, and shows where the mistake is', async () => {
    expect(await runTry('{{#if x}}')).toMatchObject({
      code: 64,
      stderr: expect.stringMatching(/^✗ The draft: messageTemplate: .*column 3/),
    })
    expect(await runTry('x', '--match', 'payload.a')).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('--match'),
    })
    expect(await runTry('x', '--match', '{"evnt": "x"}')).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('evnt'),
    })
    expect(await runTry('x', '--match', '{event')).toMatchObject({ code: 64 })
    const url = `${gateway.adminUrl}/api/try`
    const headers = { authorization: `Bearer ${gatewayToken}` }
    const answer = await fetch(url, { method: 'POST', headers, body: '{"last": 5000, "draft": {"template": "x"}}' })
    expect(answer.status).toBe(400)
  })

  test('hookloom try stores nothing, and exits 69 when no gateway runs', async () => {
    const count = async () => (await runCommand(['list', '--json'], gateway)).json().length
    const before = await count()
    await runTry('{{id}}')
    expect(await count()).toBe(before)
    expect(await runCommand(['try', 'x'], { dir: makeConfigDir() })).toMatchObject({ code: 69 })
  })
})
