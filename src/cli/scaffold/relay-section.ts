// The section of `sources` by which a gateway takes requests from a relay, with its key in `.env`, and the public URL that senders get.
import { join } from 'node:path'
import { privateMode } from '../../base/files.ts'
import { Problem } from '../../core/model/problem.ts'
import { editConfig, writeFileAtomic } from '../../gateway/config/config-file.ts'
import { parseConfig } from '../../gateway/config/config.ts'
import { type Env, parseEnv, renderEnvLine } from '../../gateway/config/env.ts'
import { configFile, envFile, readConfigText } from '../../gateway/config/text.ts'
import type { Config } from '../../model/config/config.ts'
import { generateHomeKey } from '../../plugins/sources/relay/keys.ts'
import { RelayConfig, toRelayedUrl } from '../../plugins/sources/relay/relay.ts'

const variable = 'HOOKLOOM_RELAY_KEY'

/** Adds what is missing, and sets the URL of a section that is there. Throws `usage-invalid` for a URL that no relay has. */
export async function addRelaySection({ dir, env }: { dir: string; env: Env }, url: string): Promise<void> {
  const checked = RelayConfig.shape.url.safeParse(url)
  if (!checked.success)
    throw new Problem('usage-invalid', `--relay: the URL ${checked.error.issues[0]?.message ?? 'is invalid'}.`)
  const secrets = readConfigText(dir, envFile) ?? ''
  const values = { ...parseEnv(secrets).values, ...env }
  const key = values[variable] ?? generateHomeKey()
  const text = readConfigText(dir, configFile) ?? '{}'
  const { config, problems } = parseConfig(text, { ...values, [variable]: key })
  if (config === undefined)
    throw new Problem('config-invalid', 'The configuration is invalid. Nothing was changed.', {
      frame: problems.join('\n'),
    })
  const [name] = Object.entries(config.sources).find(([, { kind }]) => kind === relayKind) ?? []
  const edited =
    name === undefined
      ? editConfig(text, ['sources', relayKind], { kind: relayKind, url, key: `\${${variable}}` })
      : editConfig(text, ['sources', name, 'url'], url)
  // the key first: a gateway that watches the configuration must never read an unset variable
  if (values[variable] === undefined) {
    const before = secrets.replace(/([^\n])$/, '$1\n')
    await writeFileAtomic(join(dir, envFile), before + renderEnvLine(variable, key), privateMode)
  }
  if (edited !== text) await writeFileAtomic(join(dir, configFile), edited, privateMode)
}

const relayKind = 'relay'

/** The public URL of the hooks, if a section of `sources` has a relay. */
export function findRelayedUrl({ sources, hooks }: Config): string | undefined {
  for (const { kind, ...options } of Object.values(sources)) {
    const relay = kind === relayKind ? RelayConfig.safeParse(options).data : undefined
    if (relay !== undefined) return toRelayedUrl(relay, hooks.path)
  }
  return undefined
}
