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

  test('a batch above the limit is stored, and no part of it runs', async () => {
    const { port, dir } = await start({ config: { hooks } })
    const answer = await post(
      port,
      '/hooks/mails',
      Array.from({ length: 10_001 }, () => 7),
    )
    expect([answer.status, JSON.parse(answer.body)]).toMatchObject([200, { status: 'parked' }])
    const { deliveryId } = z.object({ deliveryId: z.string() }).parse(JSON.parse(answer.body))
    const { stdout } = await runCommand(['show', deliveryId], { dir })
    expect(stdout).toContain('expected at most 10000 items, found 10001')
  })

  test('show says why a batch made no action', async () => {
    const { port, dir } = await start({ config: { hooks } })
    expect((await post(port, '/hooks/quoted', [1, 2])).status).toBe(204)
    const { stdout } = await runCommand(['show', 'last'], { dir })
    expect(stdout).toContain('The payload is a list itself: write "payload".')
  })
})
