// A repeated delivery is counted and logged, and the commands and the admin API show the number of repetitions.
import { describe, expect, onTestFinished, test } from 'vitest'
import { readDeliveryId } from './answers.ts'
import { runCommand } from './command.ts'
import { gatewayToken } from './gateway.ts'
import { type Inside, readStore, startInside } from './inside.ts'
import { type Headers, post } from './wire.ts'

const keyed: Headers = [['idempotency-key', 'one']]

async function postRepeatedly(gateway: Inside, times: number): Promise<string> {
  const first = await post(gateway.port, '/hooks/wake', { text: 'x' }, keyed)
  for (let sent = 0; sent < times; sent += 1) await post(gateway.port, '/hooks/wake', { text: 'x' }, keyed)
  return readDeliveryId(first)
}

const readRecord = (gateway: Inside, id: string) => readStore(gateway.dir, (reader) => reader.delivery(id))

async function ask(gateway: Inside, path: string): Promise<string> {
  const reply = await fetch(`${gateway.adminUrl}${path}`, { headers: { authorization: `Bearer ${gatewayToken}` } })
  return await reply.text()
}

describe('repeated deliveries', () => {
  test('a repetition of a delivery is counted, and logged with the id of the first delivery', async () => {
    const lines: { fields: object; message: string }[] = []
    const info = (fields: object, message: string) => void lines.push({ fields, message })
    const gateway = await startInside({ log: { debug() {}, info, warn() {}, error() {} } })
    const id = await postRepeatedly(gateway, 2)
    expect(await ask(gateway, '/metrics')).toContain('hookloom_deliveries_total{outcome="duplicate",hook="wake"} 2')
    expect(await ask(gateway, '/metrics')).toContain('hookloom_deliveries_total{outcome="accepted",hook="wake"} 1')
    expect(lines.filter(({ message }) => message === `POST wake → repeats ${id}`)).toHaveLength(2)
  })

  test('hookloom list, hookloom show and the admin API show the number of repetitions and the time of the last one', async () => {
    const gateway = await startInside()
    const before = Date.now()
    const id = await postRepeatedly(gateway, 2)
    await expect.poll(async () => (await readRecord(gateway, id))?.repeats).toBe(2)
    const [shown, listed] = [
      (await runCommand(['show', id, '--json'], { dir: gateway.dir })).json()[0],
      (await runCommand(['list', '--json'], { dir: gateway.dir })).json()[0],
    ]
    for (const fields of [shown, listed, JSON.parse(await ask(gateway, `/api/deliveries/${id}`))]) {
      expect(fields).toMatchObject({ repeats: 2, repeatedAt: expect.any(String) })
      expect(Date.parse(fields.repeatedAt)).toBeGreaterThanOrEqual(before)
    }
    const rows = JSON.parse(await ask(gateway, '/api/deliveries'))
    expect(rows.deliveries[0]).toMatchObject({ deliveryId: id, repeats: 2 })
    const last = `${String(shown?.['repeatedAt']).slice(11, 19)}Z`
    expect((await runCommand(['list'], { dir: gateway.dir })).stdout).toContain(`repeated 2 times, last ${last}`)
    expect((await runCommand(['show', id], { dir: gateway.dir })).stdout).toMatch(
      new RegExp(`^\\s*repeated\\s+2 times, last ${last}$`, 'm'),
    )
  })

  test('the count of repetitions is written when the gateway stops, and survives a restart', async () => {
    const gateway = await startInside()
    const id = await postRepeatedly(gateway, 1)
    await gateway.stop()
    expect((await readRecord(gateway, id))?.repeats).toBe(1)
    const next = await startInside({ dir: gateway.dir })
    await post(next.port, '/hooks/wake', { text: 'x' }, keyed)
    await next.stop()
    expect((await readRecord(gateway, id))?.repeats).toBe(2)
  })

  test('a repetition that runs a parked delivery again is counted', async () => {
    const mappings = [{ id: 'broken', match: { path: 'broken' }, transform: { module: 'missing.ts' } }]
    const gateway = await startInside({ config: { hooks: { mappings } } })
    onTestFinished(gateway.stop)
    const github: Headers = [
      ['x-github-event', 'ping'],
      ['x-github-delivery', 'b0d3162e-cc78-11e3-81ab-4c9367dc0958'],
    ]
    const id = readDeliveryId(await post(gateway.port, '/hooks/broken', {}, github))
    await post(gateway.port, '/hooks/broken', {}, github)
    await expect.poll(async () => (await readRecord(gateway, id))?.repeats).toBe(1)
  })
})
