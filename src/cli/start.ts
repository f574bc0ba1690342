// The gateway in production. Its standard output has only JSON lines.
import type { Context } from './terminal/context.ts'
import { createJsonLog } from './gateway/log.ts'
import { readVersion } from './scaffold/package.ts'
import { type Ports, serve } from './gateway/serve.ts'

export async function start({ dir, env }: Context, ports: Ports): Promise<number> {
  const log = createJsonLog()
  return serve({
    dir,
    env,
    ...ports,
    log,
    // a reply on the console channel is a JSON line too
    write: (text) => log.info({ channel: 'console', text }, 'reply'),
    announce: ({ url, adminUrl, status }) => {
      const { generation, degraded } = status()
      log.info({ url, adminUrl, generation, degraded, version: readVersion() }, 'listening')
    },
  })
}
