// Writes what runs the gateway as a service into the config directory. Overwrites nothing.
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../loader/config.ts'
import { parseEnv, toEnvLine } from '../loader/config/env.ts'
import { configFile, envFile } from '../loader/config/text.ts'
import { privateMode, reportUnwritable, writeFileAtomic } from '../loader/config-file.ts'
import { Config } from '../model/config.ts'
import { exitCodes, Problem } from '../model/problem.ts'
import { make } from './scaffold/folder.ts'
import { inPackage } from './scaffold/package.ts'
import {
  composeNetwork,
  gateways,
  renderCaddyfile,
  renderCompose,
  renderDockerfile,
  renderUnit,
  type ServiceFacts,
} from './scaffold/service.ts'
import type { Context } from './terminal/context.ts'

export type ServiceKind = 'systemd' | 'docker' | 'compose'

export async function addService(context: Context, { kind }: { kind: ServiceKind }): Promise<number> {
  const { dir } = context
  if (!existsSync(join(dir, configFile))) {
    throw new Problem('config-missing', `There is no ${configFile} in ${dir}. "hookloom init" makes one.`)
  }
  const facts = toFacts(context)
  const files = toFiles(kind, facts)
  const [there] = Object.keys(files).filter((file) => existsSync(join(dir, file)))
  if (there !== undefined) {
    throw new Problem('config-invalid', `${join(dir, there)} exists already. Nothing was written. Move it away first.`)
  }
  await reportUnwritable(dir, async () => {
    for (const [file, text] of Object.entries(files)) await make(dir, file, text)
    if (kind === 'compose') await prepareCompose(dir)
  })
  for (const file of Object.keys(files)) context.print(`created  ${join(dir, file)}`)
  context.print(`\n${toNextSteps(kind, facts)}`)
  return exitCodes.ok
}

function toFiles(kind: ServiceKind, facts: ServiceFacts): Readonly<Record<string, string>> {
  if (kind === 'systemd') return { 'hookloom.service': renderUnit(facts) }
  const Dockerfile = renderDockerfile()
  if (kind === 'docker') return { Dockerfile }
  return { Dockerfile, 'compose.yaml': renderCompose(facts), Caddyfile: renderCaddyfile(facts) }
}

/** The mount points, which Docker would create as root, and the password of the database. */
async function prepareCompose(dir: string): Promise<void> {
  for (const folder of ['state', 'agents', ...gateways])
    await mkdir(join(dir, folder), { recursive: true, mode: 0o700 })
  const file = join(dir, envFile)
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  if (parseEnv(text).values['POSTGRES_PASSWORD'] !== undefined) return
  const line = toEnvLine('POSTGRES_PASSWORD', randomBytes(24).toString('hex'))
  await writeFileAtomic(file, text.replace(/([^\n])$/, '$1\n') + line, privateMode)
}

/** A configuration that is invalid, because its variables are set in the service only, has the defaults. */
function toFacts(context: Context): ServiceFacts {
  const { dir } = context
  const { uid, gid } = statSync(dir)
  const own = userInfo()
  const isOwn = own.uid === uid
  return {
    dir,
    program: inPackage(),
    node: process.execPath,
    user: isOwn ? own.username : String(uid),
    group: String(gid),
    owner: `${uid}:${gid}`,
    ...toServing(context),
  }
}

function toServing({ dir, env }: Context) {
  const { server, hooks } = readConfig()
  return { stopTimeoutMs: server.stopTimeoutMs, hooksPath: hooks.path, port: server.port === 0 ? 8790 : server.port }

  function readConfig(): Config {
    try {
      return loadConfig({ dir, env }).config
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      return Config.parse({})
    }
  }
}

function toNextSteps(kind: ServiceKind, { dir, program, owner }: ServiceFacts): string {
  if (kind === 'systemd') {
    const file = join(dir, 'hookloom.service')
    return `As root:\n\n  cp ${file} /etc/systemd/system/\n  systemctl daemon-reload\n  systemctl enable --now hookloom`
  }
  if (kind === 'docker')
    return `Build the image:\n\n  docker build --tag hookloom --file ${join(dir, 'Dockerfile')} ${program}`
  const root = owner.startsWith('0:')
    ? `\nThe gateways would run as root: give ${dir} to another user first, and write its ids into compose.yaml.\n`
    : ''
  return `.env has POSTGRES_PASSWORD. Set these keys in ${configFile}:

  "server": { "host": "0.0.0.0", "trustedProxies": ["${composeNetwork}"] },
  "store": { "url": "\${DATABASE_URL}" },
${root}
Then start, and restart one gateway after the other without a failed request:

  docker compose --project-directory ${dir} up --build --detach --wait
  docker compose --project-directory ${dir} up --detach --no-deps --force-recreate --wait gateway-1
  docker compose --project-directory ${dir} up --detach --no-deps --force-recreate --wait gateway-2`
}
