// Runs a gateway from its start to the signal that stops it.
import { constants } from 'node:os'
import { setFlagsFromString } from 'node:v8'
import { createHookloom, type Hookloom, type HookloomOptions } from '../../app.ts'
import { toErrorName } from '../../base/exceptions.ts'
import { readVersion } from '../../base/package.ts'
import type { Log } from '../../base/log.ts'

/** Ports that replace the configured ports. */
export type Ports = Pick<HookloomOptions, 'port' | 'adminPort'>

type ServeOptions = Omit<HookloomOptions, 'log'> & {
  readonly log: Log
  /** What SIGHUP does: a service reloads, and a gateway in a terminal ends with its terminal. */
  readonly onHangup: 'reload' | 'stop'
  /** Called when the gateway listens. */
  readonly announce: (gateway: Hookloom) => void
}

/** Where an exception is that no part of the gateway can catch: in a timer, or in a listener. */
const outside = 'outside of a call of the gateway'

/**
 * V8 lets dead objects of requests fill up to four times the memory of the live ones before it looks for them. With twice, the gateway needs 70 MB less
 * under overload, and 1 to 2 % more processor time.
 */
const heapGrowth = '--heap-growing-percent=100'

/**
 * Serves until SIGTERM or SIGINT, or until SIGHUP with `onHangup: 'stop'`, then stops: refuses new requests, and finishes or releases running jobs. A second signal ends the process
 * at once. Unfinished jobs run again at the next start.
 */
export async function serve({ announce, onHangup, ...options }: ServeOptions): Promise<number> {
  const { log } = options
  setFlagsFromString(heapGrowth)
  let reload = async () => {}
  const stopping = new Promise<NodeJS.Signals>((resolve) => {
    let signals = 0
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
      process.on(signal, () => {
        if (signal === 'SIGHUP' && onHangup === 'reload') return void reload()
        signals += 1
        if (signals > 1) process.exit(128 + constants.signals[signal])
        resolve(signal)
      })
    }
  })
  // the default of this signal is to end the process, and other servers use it for their logs
  process.on('SIGUSR2', (signal) => log.info({ signal }, 'this signal changes nothing here; SIGHUP reloads'))
  let nameThrower: Hookloom['describeThrower'] = () => undefined
  // an unhandled rejection in an integrator's code must not end the gateway; its message may quote a payload, so it is not logged
  process.on('unhandledRejection', (thrown) => {
    const who = nameThrower(thrown)
    log.error(
      { thrown: toErrorName(thrown) },
      `unhandled promise rejection${who === undefined ? '' : `: ${who} ${outside}`}`,
    )
  })
  // the exception ends the process after this, as it does without a listener
  process.on('uncaughtExceptionMonitor', (thrown) => {
    const who = nameThrower(thrown)
    if (who !== undefined) log.error({ thrown: toErrorName(thrown) }, `${who} ${outside}, so the gateway ends`)
  })
  const gateway = await createHookloom({ ...options, version: readVersion() })
  nameThrower = gateway.describeThrower
  reload = () => reloadOnSignal(gateway, log)
  announce(gateway)
  const signal = await stopping
  log.info({ signal }, 'stopping')
  await gateway.stop(signal)
  log.info({}, 'stopped')
  return 0
}

/** Reads the configuration and the modules again, as a save does. The reload logs each module itself. */
async function reloadOnSignal(gateway: Hookloom, log: Log): Promise<void> {
  const signal = 'SIGHUP'
  try {
    const { generation, swapped, problem } = await gateway.reload()
    if (problem !== undefined)
      log.warn({ signal, generation }, `reload: ${problem.detail} The last good version serves.`)
    else if (swapped) log.info({ signal, generation }, `reload: generation ${generation} is live`)
    else log.info({ signal, generation }, 'reload: the gateway serves the same as before')
  } catch (err) {
    log.error({ err, signal }, 'reload: it failed inside the gateway')
  }
}
