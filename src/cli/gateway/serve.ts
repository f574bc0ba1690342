// Runs a gateway from its start to the signal that stops it.
import { createHookloom, type Hookloom, type HookloomOptions } from '../../app.ts'
import { toErrorName } from '../../base/exceptions.ts'
import { readVersion } from '../../base/package.ts'
import type { Log } from '../../model/log.ts'

/** Ports that replace the configured ports. */
export type Ports = Pick<HookloomOptions, 'port' | 'adminPort'>

type ServeOptions = Omit<HookloomOptions, 'log'> & {
  readonly log: Log
  /** Called when the gateway listens. */
  readonly announce: (gateway: Hookloom) => void
}

/**
 * Serves until SIGTERM or SIGINT, then stops: refuses new requests, and finishes or releases running jobs. A second signal ends the process
 * at once. Unfinished jobs run again at the next start.
 */
export async function serve({ announce, ...options }: ServeOptions): Promise<number> {
  const { log } = options
  const stopping = new Promise<NodeJS.Signals>((resolve) => {
    let signals = 0
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        signals += 1
        if (signals > 1) process.exit(signal === 'SIGINT' ? 130 : 143)
        resolve(signal)
      })
    }
  })
  // an unhandled rejection in an integrator's code must not end the gateway; its message may quote a payload, so it is not logged
  process.on('unhandledRejection', (thrown) => {
    log.error({ thrown: toErrorName(thrown) }, 'unhandled promise rejection')
  })
  const gateway = await createHookloom({ ...options, version: readVersion() })
  announce(gateway)
  const signal = await stopping
  log.info({ signal }, 'stopping')
  await gateway.stop(signal)
  log.info({}, 'stopped')
  return 0
}
