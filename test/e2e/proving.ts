// A gateway for signed senders in this process: without a disk, and with a clock that the test sets.
import { createHookloom, type HookloomOptions } from '../../src/app.ts'
import type { MappingInput } from '../../src/define.ts'
import { createMemoryStore } from '../../src/store/sqlite/sqlite.ts'
import type { DeliveryRecord } from '../../src/store/records.ts'
import { onFileEnd } from '../file-end.ts'
import { gatewayToken, makeConfigDir } from './gateway.ts'
import { type Reply, type RequestParts, send } from './wire.ts'

export type SignedGateway = {
  readonly port: number
  /** The gateway's clock, in milliseconds since the epoch. */
  readonly time: { now: number }
  /** Sends a request from the given client, or from a new client, so that the failures of one request lock out no other request. */
  ask(parts: RequestParts, client?: string): Promise<Reply>
  /** Reads the deliveries, the newest one last. */
  deliveries(): Promise<DeliveryRecord[]>
  /** The text of the event that a delivery made: its payload, if the mapping has no template. */
  readEvent(deliveryId: string): Promise<string | undefined>
  /** Calls the admin port with its token. */
  callAdmin(method: 'GET' | 'POST', path: string): Promise<{ status: number; body: string }>
}

/** Mappings become wakes that wait for the next heartbeat, so that nothing runs. `now` is a whole second. */
export async function startSignedGateway(
  mappings: readonly MappingInput[],
  now = Math.floor(Date.now() / 1000) * 1000,
  options: Pick<HookloomOptions, 'transport'> = {},
): Promise<SignedGateway> {
  const time = { now }
  const clock = () => time.now
  const store = createMemoryStore({ clock })
  const dir = makeConfigDir({
    config: {
      server: { trustedProxies: ['127.0.0.1'] },
      hooks: { mappings: mappings.map((mapping) => ({ action: 'wake', wakeMode: 'next-heartbeat', ...mapping })) },
    },
  })
  const app = await createHookloom({ dir, env: {}, store, clock, write: () => {}, ...options })
  onFileEnd(() => app.stop())
  const port = Number(new URL(app.url).port)
  let clients = 0
  return {
    port,
    time,
    ask(parts, client) {
      clients += 1
      const address = client ?? `10.${(clients >> 16) & 255}.${(clients >> 8) & 255}.${clients & 255}`
      return send(port, { ...parts, headers: [['x-forwarded-for', address], ...(parts.headers ?? [])] })
    },
    deliveries: () => store.deliveries({ limit: 10_000 }),
    async readEvent(deliveryId) {
      const events = await store.events({ limit: 10_000 })
      return events.find((event) => event.deliveryId === deliveryId)?.text
    },
    async callAdmin(method, path) {
      const headers = { authorization: `Bearer ${gatewayToken}` }
      const answer = await fetch(`${app.adminUrl}${path}`, { method, headers })
      return { status: answer.status, body: await answer.text() }
    },
  }
}
