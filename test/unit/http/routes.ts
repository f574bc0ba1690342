// Starts routes of the admin API on loopback, without their guards.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type Router from '@koa/router'
import type { Middleware } from 'koa'
import { createRequestListener } from '../../../src/http/server.ts'
import { silentLog } from '../../../src/model/log.ts'
import { onFileEnd } from '../../file-end.ts'

const pass: Middleware = (_, next) => next()
export const openGuards = { read: pass, operate: pass, admin: pass, adminToken: pass }

/** Returns a function that calls a route and returns the status of the answer. */
export async function startRoutes(router: Router): Promise<(method: string, path: string) => Promise<number>> {
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
