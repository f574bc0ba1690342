// Channels in the operator's code: their posts, replies that they cannot post, and saves that go live.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { readBlock } from '../pages.ts'
import { runCommand } from './command.ts'
import { type Loopback, startLoopback } from './fakes/loopback.ts'
import { hookToken, makeConfigDir, post, startGateway, writeFiles } from './gateway.ts'
import { type Inside, readDegradedBy, readNewestJob, startInside } from './inside.ts'

const file = 'hooks/channels/ntfy.ts'
const ntfy = readBlock('src/plugins/README.md', 'ts', 'defineChannel')

let server: Loopback

beforeEach(async () => {
  server = await startLoopback(({ method }) =>
    method === 'POST' ? { status: 200, body: { id: 'm1' } } : { status: 200, body: { healthy: true } },
  )
})

const toConfig = (section: object = {}) => ({
  channels: { own: { ntfy: { server: server.url, token: 'tk_0123456789', ...section } } },
})

async function ask({ url }: Pick<Inside, 'url'>, payload: object = {}): Promise<number> {
  const answer = await fetch(`${url}/agent`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer hook-secret-0123456789abcdefghij' },
    body: JSON.stringify({ message: 'The tide is out.', channel: 'own:ntfy', to: 'harbour', ...payload }),
  })
  return answer.status
}

describe('channels of integrators', () => {
  test('the channel in the page about plugins posts the reply of a run in the built package', async () => {
    const gateway = await startGateway({ config: toConfig(), files: { [file]: ntfy } })
    expect(await ask(gateway)).toBe(200)
    await expect.poll(() => server.received.length).toBe(1)
    const [posted] = server.received
    expect(posted).toMatchObject({ method: 'POST', path: '/harbour' })
    expect(posted?.headers.authorization).toBe('Bearer tk_0123456789')
    expect(posted?.text).toContain('The tide is out.')
    await expect.poll(() => readNewestJob(gateway)).toMatchObject({ state: 'done' })
    const steps = (await readNewestJob(gateway))?.steps
    expect(steps?.find(({ name }) => name === 'deliver')?.detail).toBe('sent to own:ntfy harbour as m1')
  })

  test('a channel in code posts to the recipient of its section, and "last" means the only channel with a recipient', async () => {
    const { channels } = toConfig({ to: 'quay' })
    const gateway = await startInside({
      // the reply of a heartbeat would be posted to the channel too
      config: { channels: { ...channels, default: undefined }, agents: { defaults: { heartbeat: { every: 0 } } } },
      files: { [file]: ntfy },
    })
    await ask(gateway, { to: undefined })
    await expect.poll(() => server.received.map(({ path }) => path)).toEqual(['/quay'])
    await expect.poll(() => readNewestJob(gateway)).toMatchObject({ state: 'done' })
    await ask(gateway, { to: undefined, channel: 'last' })
    await expect.poll(() => server.received.map(({ path }) => path)).toEqual(['/quay', '/quay'])
  })

  test('a channel in code reloads when it is saved, and broken code leaves the last good one running', async () => {
    const gateway = await startInside({ config: toConfig(), files: { [file]: ntfy } })
    writeFiles(gateway.dir, { [file]: ntfy.replace('body: text', 'body: `Ahoy! ${text}`') })
    await expect
      .poll(
        async () => {
          await ask(gateway)
          return server.received.at(-1)?.text
        },
        { interval: 300 },
      )
      .toMatch(/^Ahoy! /)
    writeFiles(gateway.dir, { [file]: 'export default {' })
    await expect.poll(() => readDegradedBy(gateway)).toEqual([expect.stringMatching(/does not build/)])
    const before = server.received.length
    await ask(gateway)
    await expect.poll(() => server.received.length).toBeGreaterThan(before)
    expect(server.received.at(-1)?.text).toMatch(/^Ahoy! /)
  })

  test.each([
    ['is missing', {}, /hooks\/channels\/ntfy\.ts does not exist/],
    ['does not build', { [file]: 'export default {' }, /does not build/],
    ['exports no channel', { [file]: 'export default { send: 1 }' }, /must export a channel by default/],
  ])('a channel in code that %s does not stop the gateway, and its replies wait', async (_, files, why) => {
    const gateway = await startInside({ config: toConfig(), files })
    expect(await ask(gateway)).toBe(200)
    await expect.poll(async () => (await readNewestJob(gateway))?.lastError).toMatch(why)
    expect(await readNewestJob(gateway)).toMatchObject({ state: 'queued', attempts: 0 })
    expect(await readDegradedBy(gateway)).toEqual([expect.stringMatching(why)])
    expect(server.received).toEqual([])
  })

  test('a channel with invalid options is an error of the configuration that names the key', async () => {
    const dir = makeConfigDir({ config: toConfig({ token: 7 }), files: { [file]: ntfy } })
    const { code, json } = await runCommand(['check', '--json'], { dir })
    expect(code).toBe(78)
    expect(
      json()
        .map(({ detail }) => detail)
        .join('\n'),
    ).toContain('channels.own.ntfy.token')
  })

  test('hookloom check and hookloom doctor list a channel in code', async () => {
    const dir = makeConfigDir({ config: toConfig(), files: { [file]: ntfy } })
    const well = await runCommand(['check', '--json'], { dir })
    expect(well.json()).toContainEqual(expect.objectContaining({ name: 'channel own:ntfy', ok: true }))
    const asked = await runCommand(['doctor', '--json'], { dir })
    expect(asked.json()).toContainEqual({
      name: 'channel-own:ntfy',
      ok: true,
      detail: expect.stringMatching(/^ntfy answers 200\. channels\.own\.ntfy\.onUnknown is "stop": [^.]*$/),
    })
    rmSync(join(dir, file))
    const gone = await runCommand(['check', '--json'], { dir })
    expect(gone.json()).toContainEqual(expect.objectContaining({ name: 'channel own:ntfy', ok: false }))
    expect(gone.code).toBe(70)
  })

  test('a request that names a channel which is not configured is refused, and the message of a transform that chooses one dies', async () => {
    const pigeon = 'export default () => ({ message: "Coo", channel: "own:pigeon" })'
    const gateway = await startInside({
      config: { ...toConfig(), hooks: { mappings: [{ match: { path: 'coo' }, transform: { module: 'coo.ts' } }] } },
      files: { [file]: ntfy, 'hooks/transforms/coo.ts': pigeon },
    })
    expect(await ask(gateway, { channel: 'own:pigeon' })).toBe(400)
    expect(await post({ url: gateway.url, token: hookToken }, 'coo', {})).toMatchObject({ ok: true })
    await expect.poll(() => readNewestJob(gateway)).toMatchObject({ state: 'dead' })
    expect((await readNewestJob(gateway))?.lastError).toContain('channels.own.pigeon is not configured')
    expect(await ask(gateway, { channel: 'own:' })).toBe(400)
    expect(await ask(gateway, { channel: 'own:../x' })).toBe(400)
  })
})
