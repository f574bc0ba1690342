// Senders that put many events into one request, as SendGrid and HubSpot do.
import { expect, test } from 'vitest'
import { z } from 'zod'
import { runCommand } from './command.ts'
import { describeEngines } from './engines.ts'
import { post } from './wire.ts'

const toMapping = (path: string, forEach: string, messageTemplate: string) => ({
  id: path,
  match: { path },
  forEach,
  messageTemplate,
  deliver: false,
})
const hooks = {
  mappings: [
    toMapping('mails', 'payload', '{{[0].event}} {{payload[0].sg_event_id}}'),
    toMapping('quoted', "['a.b'].items", "{{['a.b'].items[0]}} of {{['a.b'].name}}"),
  ],
}
const Shown = z.object({ jobs: z.array(z.object({ jobId: z.string() })) })
const Receipt = z.object({ deliveryId: z.string(), runIds: z.array(z.string()), wakes: z.literal(0) })

describeEngines('batches of events', (start) => {
  test('each of 1,000 events of a payload that is a list becomes a run, and a repetition gets the same runs', async () => {
    const { port } = await start({ config: { hooks } })
    const events = Array.from({ length: 1_000 }, (_, at) => ({ event: 'open', sg_event_id: `e${at}` }))
    const headers = [['idempotency-key', 'batch 1']] as const
    const answer = await post(port, '/hooks/mails', events, headers)
    expect(answer.status).toBe(200)
    expect(new Set(Receipt.parse(JSON.parse(answer.body)).runIds).size).toBe(1_000)
    const again = await post(port, '/hooks/mails', events, headers)
    expect([again.body, again.headers['idempotent-replay']]).toEqual([answer.body, 'true'])
  })

  test('each item of a batch above the limit becomes a run, once, and a repetition of the batch makes none', async () => {
    // the runs are not what is tested
    const config = { server: { maxBodyBytes: 1_048_576 }, hooks, agents: { defaults: { maxConcurrent: 1 } } }
    const { port, dir } = await start({ config })
    const events = Array.from({ length: 10_001 }, (_, at) => ({ event: 'open', sg_event_id: `e${at}` }))
    const headers = [['idempotency-key', 'big batch']] as const
    const answer = await post(port, '/hooks/mails', events, headers)
    expect([answer.status, JSON.parse(answer.body)]).toMatchObject([200, { status: 'pending' }])
    const { deliveryId } = z.object({ deliveryId: z.string() }).parse(JSON.parse(answer.body))
    const again = await post(port, '/hooks/mails', events, headers)
    expect(again.body).toBe(answer.body)
    const readParts = async () => {
      const listed = (await runCommand(['list', '--limit', '50', '--json'], { dir })).json()
      return listed.filter((one) => one['deliveryId'] !== deliveryId)
    }
    await expect
      .poll(async () => (await readParts()).filter(({ state }) => state === 'accepted').length, { timeout: 120_000 })
      .toBe(21)
    expect(await readParts()).toHaveLength(21)
    const { stdout } = await runCommand(['show', deliveryId], { dir })
    expect(stdout).toContain('The 10001 items of payload are split into 21 deliveries.')
    const shown = await Promise.all(
      (await readParts()).map(async (one) =>
        (await runCommand(['show', String(one['deliveryId']), '--json'], { dir })).json(),
      ),
    )
    const runs = shown.flat().flatMap((record) => Shown.parse(record).jobs.map(({ jobId }) => jobId))
    expect([runs.length, new Set(runs).size]).toEqual([10_001, 10_001])
  })

  test('show says why a batch made no action', async () => {
    const { port, dir } = await start({ config: { hooks } })
    expect((await post(port, '/hooks/quoted', [1, 2])).status).toBe(204)
    const { stdout } = await runCommand(['show', 'last'], { dir })
    expect(stdout).toContain('The payload is a list itself: write "payload".')
  })
})
