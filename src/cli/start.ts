// Runs the gateway in production. Its standard output has only JSON lines.
import type { Context } from './terminal/context.ts'
import { createJsonLog } from './gateway/log.ts'
import { readVersion } from '../base/package.ts'
import { formatCommand } from '../base/shell.ts'
import { type Ports, serve } from './gateway/serve.ts'

export async function start({ dir, env }: Context, ports: Ports): Promise<number> {
  const log = createJsonLog()
  return serve({
    dir,
    env,
    ...ports,
    onHangup: 'reload',
    log,
    // logs only the length of a reply: the log is kept and forwarded, and a reply may quote a payload
    write: ({ jobId, agentId, chars }) =>
      log.info(
        { jobId, channel: 'console', agentId, chars },
        `a reply of ${chars} characters for the console; "${formatCommand`hookloom show ${jobId}`}" shows it`,
      ),
    announce: ({ url, adminUrl, status }) => {
      const { generation, degraded } = status()
      log.info({ url, adminUrl, generation, degraded, version: readVersion() }, 'listening')
      // loaded only now, because a start needs nothing of it
      void import('./scaffold/folder.ts').then(({ renewEditorConfig }) => renewEditorConfig(dir))
    },
  })
}
