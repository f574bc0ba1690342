// A loop: the receiver of the replies is a hook of the gateway itself, so each reply is the next request.
import { expect, test } from 'vitest'
import { freePort, gatewayToken } from './gateway.ts'
import { readStore, startInside } from './inside.ts'
import { post } from './wire.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

async function startLoop() {
  const port = await freePort()
  return await startInside({
    config: {
      server: { port },
      hooks: {
        mappings: [
          {
            match: { path: 'replies' },
            verify: { scheme: 'standard-webhooks', secret },
            sessionKey: 'hook:replies',
            messageTemplate: '{{text}}',
            wakeMode: 'next-heartbeat',
          },
          { match: { path: 'start' }, messageTemplate: 'Begin.', wakeMode: 'next-heartbeat', channel: 'webhook' },
        ],
      },
      channels: {
        webhook: { endpoints: { ops: { url: `http://127.0.0.1:${port}/hooks/replies`, secret } } },
        default: { channel: 'webhook' },
      },
    },
  })
}

const readRecords = (dir: string) => readStore(dir, (store) => store.deliveries({ limit: 20 }))

test('a loop of replies and runs ends by itself, and the last run says why', async () => {
  const gateway = await startLoop()
  expect((await post(gateway.port, '/hooks/start', {})).status).toBe(200)
  await expect.poll(async () => (await readRecords(gateway.dir)).at(-1)?.jobs[0]?.state).toBe('dead')
  const all = await readRecords(gateway.dir)
  expect(all.map(({ hook }) => hook)).toEqual(['start', 'replies', 'replies', 'replies', 'replies'])
  expect(all.flatMap(({ jobs }) => jobs.map(({ state }) => state))).toEqual(['done', 'done', 'done', 'done', 'dead'])
  expect(all.at(-1)?.jobs[0]?.lastError).toMatch(/answered 400 \(loop-detected\)\. The receiver is a hook of a gateway/)
  const headers = { authorization: `Bearer ${gatewayToken}` }
  const refusals = await (await fetch(`${gateway.adminUrl}/api/refusals`, { headers })).json()
  expect(JSON.stringify(refusals)).toContain('loop-detected')
})

test.each([
  ['4', 200],
  ['5', 400],
  ['1, 5', 400],
  ['a lot', 200],
])('a request with the hop count "%s" is answered %i', async (hops, status) => {
  const { port } = await startLoop()
  const reply = await post(port, '/hooks/start', {}, [['Hookloom-Hops', hops]])
  expect(reply.status).toBe(status)
})
