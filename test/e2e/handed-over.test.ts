// The log lines and the event about a handshake in which a sender sends its secret.
import { expect, test } from 'vitest'
import { gatewayToken } from './gateway.ts'
import { readStore, startInside } from './inside.ts'
import { send } from './wire.ts'

test('arming a mapping and accepting its secret are logged, and the secret makes an event', async () => {
  const lines: string[] = []
  const addLine = (fields: object, message: string) => void lines.push(`${JSON.stringify(fields)} ${message}`)
  const gateway = await startInside({
    config: { hooks: { mappings: [{ id: 'asana', match: { path: 'asana' }, verify: { scheme: 'asana' } }] } },
    log: { debug: addLine, info: addLine, warn: addLine, error: addLine },
  })
  const secret = 'b537207f20cbfa02357cf448134da559e8bd39d61597dcd5631b8012eae53e81'
  const sendSecret = () =>
    send(gateway.port, { method: 'POST', target: '/hooks/asana', headers: [['x-hook-secret', secret]], body: '' })
  expect((await sendSecret()).status).toBe(401)
  const headers = { authorization: `Bearer ${gatewayToken}` }
  await fetch(`${gateway.adminUrl}/api/mappings/asana/arm`, { method: 'POST', headers })
  expect(lines.filter((text) => text.includes('"asana" accepts a secret of its sender until'))).toHaveLength(1)
  expect((await sendSecret()).status).toBe(200)
  expect(lines.filter((text) => text.includes('handed over the secret of the mapping "asana"'))).toHaveLength(1)
  expect(lines.join('\n')).not.toContain(secret)
  const readEvents = () => readStore(gateway.dir, (reader) => reader.events({ limit: 9 }))
  await expect
    .poll(readEvents)
    .toEqual([
      expect.objectContaining({ text: expect.stringContaining('secret of the mapping "asana"'), sessionKey: 'main' }),
    ])
})
