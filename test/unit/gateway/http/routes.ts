// Starts routes of the admin API on loopback, without their guards.
import { once } from 'node:events'
import { createServer } from 'node:http'
import Router from '@koa/router'
import { addRoutes, type Handlers } from '../../../../src/gateway/http/api/handlers.ts'
import { createRequestListener } from '../../../../src/gateway/http/server.ts'
import { ConfigSchema } from '../../../../src/gateway/config/keys.ts'
import { silentLog } from '../../../../src/base/log.ts'
import { onFileEnd } from '../../../file-end.ts'

/** Returns a function that calls a route and returns the status of the answer. */
export async function startRoutes(
  handlers: Partial<Handlers>,
): Promise<(method: string, path: string) => Promise<number>> {
  const router = new Router()
  const generation = () => ({ config: ConfigSchema.parse({}) })
  addRoutes(router, handlers, { guard: (_ctx, _call, run) => run(), generation })
  const server = createServer(createRequestListener(router.routes(), { newId: () => 'id', log: silentLog }))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onFileEnd(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return async (method, path) => (await fetch(`http://127.0.0.1:${port}${path}`, { method })).status
}
