// A configuration without a channel: what happens to replies, and who is warned.
import { beforeAll, expect, test } from 'vitest'
import { runCommand } from './command.ts'
import { gatewayToken, hookToken, makeConfigDir, post } from './gateway.ts'
import { type Inside, readStore, startInside } from './inside.ts'

const config = {
  hooks: {
    enabled: true,
    token: hookToken,
    defaultSessionKey: 'hook:ingress',
    allowRequestSessionKey: false,
    allowedSessionKeyPrefixes: ['hook:'],
  },
  channels: undefined,
}
const sentence = expect.stringContaining('no channel is configured')
const lines: string[] = []
let gateway: Inside

beforeAll(async () => {
  const note = (_: object, message: string) => void lines.push(message)
  gateway = await startInside({ config, log: { debug: note, info: note, warn: note, error: note } })
})

async function readNewest() {
  const records = await readStore(gateway.dir, (store) => store.deliveries({ limit: 9 }))
  return records.at(-1)?.jobs[0]
}

test('a run without a channel is done and keeps its reply, and its step "deliver" is skipped with the reason', async () => {
  await post({ url: gateway.url, token: hookToken }, 'agent', { message: 'The build failed.' })
  await expect.poll(readNewest).toMatchObject({ state: 'done', lastError: undefined })
  const steps = (await readNewest())?.steps ?? []
  expect(steps.find(({ name }) => name === 'run')).toMatchObject({
    state: 'done',
    result: expect.stringContaining('The build failed.'),
  })
  expect(steps.find(({ name }) => name === 'deliver')).toMatchObject({ state: 'skipped', detail: sentence })
})

test('the log of a start, hookloom check and the health report each say that no channel is configured', async () => {
  expect(lines.filter((line) => line.includes('no channel is configured'))).toHaveLength(1)
  const checked = await runCommand(['check', '--json'], { dir: makeConfigDir({ config }) })
  expect(checked.json().filter(({ ok }: { ok?: unknown }) => ok === false)).toMatchObject([
    { name: 'channels', severity: 'warning', detail: sentence },
  ])
  expect(checked.code).toBe(0)
  const health = await fetch(`${gateway.adminUrl}/api/health`, {
    headers: { authorization: `Bearer ${gatewayToken}` },
  })
  expect(await health.json()).toMatchObject({ withoutChannels: sentence })
})

test('a request that names a channel is refused if no channel is configured', async () => {
  const answer = await post({ url: gateway.url, token: hookToken }, 'agent', { message: 'x', channel: 'telegram' })
  expect(answer).toMatchObject({ ok: false, code: 'payload-invalid', error: expect.stringMatching(/^channel: /) })
})
