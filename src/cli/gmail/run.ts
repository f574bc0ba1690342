// Watches the mailbox in a separate process, until a signal arrives or the consent is revoked.
import { createHttpSink } from '../../plugins/sources/gmail/http-sink.ts'
import { toStateFile } from '../../plugins/sources/gmail/mail.ts'
import { startWatcher } from '../../plugins/sources/gmail/watcher.ts'
import { loadConfig } from '../../gateway/config/config.ts'
import { toCallableUrl } from '../../base/http.ts'
import { builtInSenders } from '../../gateway/built-in.ts'
import { createVerifier } from '../../gateway/proofs/verify.ts'
import type { SourceHost } from '../../model/source.ts'
import type { Config } from '../../model/config/config.ts'
import { exitCodes } from '../../core/model/problem.ts'
import { createClientLookup } from '../../gateway/http/client.ts'
import { createThrottle } from '../../gateway/http/throttle.ts'
import type { Context } from '../terminal/context.ts'
import { findGatewayAddress, findHookToken } from '../gateway/gateway.ts'
import { requireWatched } from './flags.ts'
import { createJsonLog } from '../gateway/log.ts'

export async function run({ dir, env }: Context): Promise<number> {
  const { config } = loadConfig({ dir, env })
  const gmail = requireWatched(config)
  const log = createJsonLog()
  const sink = createHttpSink({
    account: gmail.account,
    hooks: () => findHooksUrl(dir, config),
    file: toStateFile(dir),
  })
  const gate = { ...createThrottle({ clock: Date.now }), clientOf: createClientLookup(config.server.trustedProxies) }
  const verifier: SourceHost['verifier'] = (settings, fetch) =>
    createVerifier(settings, { now: Date.now, fetch, senders: builtInSenders })
  const watcher = startWatcher({ dir, gmail, sink, gate, verifier, log, clock: Date.now })
  log.info({ account: gmail.account, mode: gmail.mode }, 'watching')
  const stopped = new Promise<undefined>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(undefined))
  })
  const lost = await Promise.race([stopped, watcher.consentLost])
  await watcher.stop()
  if (lost !== undefined) throw lost
  log.info({}, 'stopped')
  return exitCodes.ok
}

/** The URL at which the gateway receives requests now, and a hook token. */
export function findHooksUrl(dir: string, config: Config): { url: string; token: string } {
  return { url: toCallableUrl(findGatewayAddress(dir, config).url), token: findHookToken(config) }
}
