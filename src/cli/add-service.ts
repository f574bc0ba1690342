// Writes the files that run the gateway as a service into the config directory, and overwrites no file that somebody edited. The unit of systemd is
// printed: root must not copy a file from a folder in which the user of the service can write.
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { loadConfig } from '../gateway/config/config.ts'
import { loadConfigParts } from '../gateway/config/config-parts.ts'
import { parseEnv, renderEnvLine } from '../gateway/config/env.ts'
import { configFile, envFile } from '../gateway/config/text.ts'
import { toErrorText } from '../base/exceptions.ts'
import { codeMode, privateMode } from '../base/files.ts'
import { reportUnwritable, writeFileAtomic } from '../gateway/config/config-file.ts'
import { ConfigSchema } from '../gateway/config/keys.ts'
import { toStorePlace } from '../model/places.ts'
import { exitCodes, Problem } from '../core/model/problem.ts'
import { createMissingFile } from './scaffold/folder.ts'
import { renderConfigIgnore, renderConfigImage, renderKubernetes } from './scaffold/kubernetes.ts'
import { resolvePackagePath } from '../base/package.ts'
import {
  computeStopSeconds,
  gateways,
  imageFolder,
  imagePackage,
  renderCaddyfile,
  renderCompose,
  renderDockerfile,
  renderUnit,
  type ServiceFacts,
  describeInstallation,
} from './scaffold/service.ts'
import { quoteShellWord } from '../base/shell.ts'
import { type Context } from './terminal/context.ts'
import { describeWarning } from './terminal/print.ts'

export type ServiceKind = 'systemd' | 'docker' | 'compose' | 'kubernetes'

export async function addService(context: Context, { kind }: { kind: ServiceKind }): Promise<number> {
  const { dir } = context
  if (!existsSync(join(dir, configFile))) {
    throw new Problem('config-missing', `There is no ${configFile} in ${dir}. "hookloom init" makes one.`)
  }
  const facts = readFacts(context)
  if (kind === 'systemd') return printUnit(context, facts)
  const files = renderFiles(kind, facts)
  // an earlier run may have written these files when root owned the directory; they are replaced unless somebody edited them
  const ofRoot = renderFiles(kind, { ...facts, user: 'root', group: '0', owner: '0:0' })
  const findOther = (file: string) => {
    const text = existsSync(join(dir, file)) ? readFileSync(join(dir, file), 'utf8') : undefined
    return text === undefined || text === files[file] ? undefined : { file, isOld: text === ofRoot[file] }
  }
  const others = Object.keys(files).flatMap((file) => findOther(file) ?? [])
  const edited = others.find(({ isOld }) => !isOld)?.file
  if (edited !== undefined) {
    throw new Problem('conflict', `${join(dir, edited)} exists already. Nothing was written. Move it away first.`)
  }
  await reportUnwritable(dir, async () => {
    for (const [file, text] of Object.entries(files)) {
      const isOld = others.some((other) => other.file === file)
      if (isOld) await writeFileAtomic(join(dir, file), text, codeMode)
      const { what } = isOld ? { what: 'changed' } : await createMissingFile(dir, file, text)
      context.print(`${what.padEnd(7)}  ${join(dir, file)}`)
    }
    if (kind === 'compose') await prepareCompose(dir)
    await writePackage(facts)
    context.print(`packed   ${join(dir, imageFolder, imagePackage)}`)
  })
  context.print(`\n${describeNextSteps(kind, facts)}`)
  return exitCodes.ok
}

type FileKind = Exclude<ServiceKind, 'systemd'>

function renderFiles(kind: FileKind, facts: ServiceFacts): Readonly<Record<string, string>> {
  const image = { [`${imageFolder}/Dockerfile`]: renderDockerfile(facts) }
  if (kind === 'docker') return image
  if (kind === 'kubernetes') {
    return {
      ...image,
      'Dockerfile.kubernetes': renderConfigImage(),
      'Dockerfile.kubernetes.dockerignore': renderConfigIgnore(),
      'kubernetes.yaml': renderKubernetes(facts),
    }
  }
  return { ...image, 'compose.yaml': renderCompose(facts), Caddyfile: renderCaddyfile(facts) }
}

/** Writes this package as `npm pack` wrote it, so that the image has the version that is installed here. */
async function writePackage({ dir, program }: ServiceFacts): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'hookloom-'))
  try {
    const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder, program]
    await promisify(execFile)('npm', args, { cwd: folder, maxBuffer: 10_000_000 })
    const [packed = ''] = await readdir(folder)
    await writeFileAtomic(join(dir, imageFolder, imagePackage), await readFile(join(folder, packed)), codeMode)
  } catch (error) {
    throw new Problem(
      'internal-error',
      `"npm pack" failed, and the image is built from what it writes: ${toErrorText(error)}`,
      {
        cause: error,
      },
    )
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Creates the mount points, which Docker would create as root, and the password of the database. */
async function prepareCompose(dir: string): Promise<void> {
  for (const folder of ['state', 'agents', ...gateways])
    await mkdir(join(dir, folder), { recursive: true, mode: 0o700 })
  const file = join(dir, envFile)
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  if (parseEnv(text).values['POSTGRES_PASSWORD'] !== undefined) return
  const line = renderEnvLine('POSTGRES_PASSWORD', randomBytes(24).toString('hex'))
  await writeFileAtomic(file, text.replace(/([^\n])$/, '$1\n') + line, privateMode)
}

function readFacts(context: Context): ServiceFacts {
  const { dir } = context
  const { uid, gid } = statSync(dir)
  return {
    dir,
    program: resolvePackagePath(),
    node: process.execPath,
    user: findUserName(uid),
    group: String(gid),
    owner: `${uid}:${gid}`,
    ...readServerFacts(context),
  }
}

function findUserName(uid: number): string {
  try {
    const own = userInfo()
    // a name with other characters is replaced by the numeric id, because a service file could misread it
    return own.uid === uid && /^[a-z_][\w.-]*$/i.test(own.username) ? own.username : String(uid)
  } catch {
    // the user has no entry in passwd
    return String(uid)
  }
}

/** Takes the defaults for an invalid configuration, and says so: a variable may be set in the service only. */
function readServerFacts({ dir, env, note }: Context) {
  const parts = loadConfigParts({ dir, env })
  if (parts.problem !== undefined)
    note(`${describeWarning(parts.problem)} The files have the default ports, paths and limits.`)
  const { server, hooks, agents } =
    parts.problem === undefined ? loadConfig({ dir, env }).config : ConfigSchema.parse({})
  const place = toStorePlace(dir, parts)
  const workspaces = [agents.defaults, ...agents.list].flatMap(({ workspace }) =>
    workspace === undefined ? [] : [resolve(dir, workspace)],
  )
  const written = [...(place.kind === 'file' ? [dirname(place.file)] : []), ...workspaces]
  return {
    stopTimeoutMs: server.stopTimeoutMs,
    // an unknown store counts as a shared database: the variable in its URL may be set in the service only
    sharesStore: place.kind === 'url' || !parts.isStoreKnown,
    // four threads besides those that serve: a spare one, and one each for replays, for requests that are tried on the page, and for shadows
    transformsMb: (hooks.transforms.workers + 4) * hooks.transforms.memoryMb,
    hooksPath: hooks.path,
    port: server.port === 0 ? 8790 : server.port,
    adminPort: server.adminPort === 0 ? 8791 : server.adminPort,
    writable: [...new Set(written)].filter((folder) => folder !== dir && !folder.startsWith(`${dir}/`)),
  }
}

/** Prints only the unit on standard output, so that root can write it where only root can write. */
function printUnit(context: Context, facts: ServiceFacts): number {
  const { dir, program, node, owner } = facts
  context.print(renderUnit(facts).trimEnd())
  if (isOfRoot(owner)) {
    context.note(
      `\nThe gateway would run as root. Give the directory to another user, and run this command again:\n\n  chown -R <user>: ${quoteShellWord(dir)}`,
    )
    return exitCodes.ok
  }
  const command = [node, join(program, 'dist/main.js')].map(quoteShellWord).join(' ')
  const isSafe = [node, program].every((path) => statSync(path).uid === 0)
  const advice = isSafe ? '' : '\nThe program does not belong to root, so read the unit before you start it.'
  context.note(`
As root:

  HOOKLOOM_HOME=${quoteShellWord(dir)} ${command} add service --kind systemd >/etc/systemd/system/hookloom.service
  systemctl daemon-reload
  systemctl enable --now hookloom${advice}`)
  return exitCodes.ok
}

function isOfRoot(owner: string): boolean {
  return owner.startsWith('0:')
}

function describeNextSteps(kind: FileKind, facts: ServiceFacts): string {
  const { dir, owner } = facts
  const build = `docker build --tag hookloom ${quoteShellWord(join(dir, imageFolder))}`
  if (kind === 'kubernetes') return describeKubernetesSteps(dir, build)
  const root = isOfRoot(owner)
    ? `\nThe gateway would run as root: give ${dir} to another user first, and run this command again.\n`
    : ''
  if (kind === 'docker') return describeDockerSteps(facts, { build, root })
  const compose = `docker compose --project-directory ${quoteShellWord(dir)}`
  return `.env has POSTGRES_PASSWORD. Set these keys in ${configFile}:

  "server": { "host": "0.0.0.0", "trustedProxies": ["${describeInstallation(dir).network}"] },
  "store": { "url": "\${DATABASE_URL}" },
${root}
Then start, and restart one gateway after the other without a failed request:

  ${compose} up --build --detach --wait
  ${compose} up --detach --no-deps --force-recreate --wait gateway-1
  ${compose} up --detach --no-deps --force-recreate --wait gateway-2`
}

/** 172.16.0.0/12 has Docker's own networks, from which a proxy on the host appears to connect. */
function describeDockerSteps(facts: ServiceFacts, { build, root }: { build: string; root: string }): string {
  const { dir, owner, port } = facts
  return `Set these keys in ${configFile}:

  "server": { "host": "0.0.0.0", "trustedProxies": ["172.16.0.0/12"] },
${root}
Then:

  ${build}
  docker run --detach --name hookloom --init --restart unless-stopped --stop-timeout ${computeStopSeconds(facts)} \\
    --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges:true --log-opt max-size=10m --log-opt max-file=5 \\
    --user ${owner} --volume ${quoteShellWord(`${dir}:/data`)} --publish 127.0.0.1:${port}:${port} hookloom
  docker exec hookloom hookloom doctor`
}

function describeKubernetesSteps(dir: string, build: string): string {
  const quoteFile = (name: string) => quoteShellWord(join(dir, name))
  const own = `docker build --tag registry.example.com/hookloom:1 --file ${quoteFile('Dockerfile.kubernetes')} ${quoteShellWord(dir)}`
  return `Set these keys in ${configFile}. In place of 10.244.1.0/24, name the networks or the addresses of the pods of your ingress controller, and
no others: each pod there may write any sender into X-Forwarded-For.

  "server": { "host": "0.0.0.0", "adminHost": "0.0.0.0", "trustedProxies": ["10.244.1.0/24"] },

In kubernetes.yaml, name your image, and the namespaces of your ingress controller and of Prometheus. Then:

  ${build}
  ${own}
  docker push registry.example.com/hookloom:1
  kubectl create secret generic hookloom-env --from-file=.env=${quoteFile('.env')}
  kubectl apply --filename ${quoteFile('kubernetes.yaml')}`
}
