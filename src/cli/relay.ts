// Runs a relay: a program at a public address that keeps requests for gateways without one. It needs no configuration and no gateway.
import { resolve } from 'node:path'
import { findErrorCode, toErrorText } from '../base/exceptions.ts'
import { exitCodes, Problem } from '../core/model/problem.ts'
import { startRelay } from '../plugins/sources/relay/relay-server.ts'
import { createJsonLog } from './gateway/log.ts'

/** Serves until SIGTERM or SIGINT. */
export async function relay(options: { port: number; host: string; dir: string }): Promise<number> {
  const log = createJsonLog()
  const dir = resolve(options.dir)
  const stopping = new Promise<void>((done) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => done())
  })
  const running = await startRelay({ ...options, dir, clock: Date.now, log }).catch((cause: unknown) => {
    const place = `${options.host}:${options.port} with the folder ${dir}`
    const why = findErrorCode(cause) ?? toErrorText(cause)
    throw new Problem('config-invalid', `The relay cannot start at ${place}: ${why}`, { cause })
  })
  log.info({ url: running.url, dir }, 'listening')
  await stopping
  await running.close()
  return exitCodes.ok
}
