import { expect, test, vi } from 'vitest'
import { runCommand } from './command.ts'
import { hookToken, startGateway } from './gateway.ts'

test(
  'hookloom retry --dead retries everything that list --dead shows, and hookloom drop ends a dead run for good',
  { timeout: 120_000 },
  async () => {
    const gateway = await startGateway({
      config: {
        runners: { gone: { kind: 'command', command: 'no-such-program' } },
        agents: { defaults: { runner: 'gone', heartbeat: { every: '30m', minIntervalSeconds: 1 } } },
      },
    })
    const { dir, url } = gateway
    const response = await fetch(`${url}/agent`, {
      method: 'POST',
      headers: { authorization: `Bearer ${hookToken}`, 'content-type': 'application/json' },
      body: JSON.stringify({ message: 'Look', wakeMode: 'now' }),
    })
    expect(response.status).toBe(200)
    const dead = await vi.waitFor(
      async () => {
        const found = (await runCommand(['list', '--dead', '--json'], { dir })).json()
        expect(found.map(({ kind }) => kind)).toEqual(['agent', 'heartbeat'])
        return found
      },
      { timeout: 60_000, interval: 100 },
    )
    const [run, heartbeat] = dead.map(({ jobId }) => jobId)
    const retried = (await runCommand(['retry', '--dead', '--json'], { dir })).json()
    expect(retried).toEqual([
      { deliveryId: dead[0]?.['deliveryId'], state: 'accepted', jobs: [run] },
      { deliveryId: null, state: 'queued', jobs: [heartbeat] },
    ])

    const deliveryId = String(dead[0]?.['deliveryId'])
    await vi.waitFor(
      async () => {
        const [record] = (await runCommand(['show', deliveryId, '--json'], { dir })).json()
        expect(record).toMatchObject({ jobs: [{ state: 'dead' }] })
      },
      { timeout: 60_000, interval: 100 },
    )
    const dropped = await runCommand(['drop', String(run)], { dir })
    expect(dropped).toMatchObject({ code: 0, stderr: '', stdout: `${deliveryId} is dropped. It will not run.\n` })
    const [record] = (await runCommand(['show', deliveryId, '--json'], { dir })).json()
    expect(record).toMatchObject({ state: 'dropped', jobs: [{ state: 'dropped' }] })
    expect(await runCommand(['retry', deliveryId], { dir })).toMatchObject({ code: 65 })
  },
)
