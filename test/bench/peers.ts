// The peers of the bench: other programs that receive webhooks. The first three do the work of the benched hook: check a token, parse JSON, use
// five fields of it, answer 200. They are not part of this package; install them to compare.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { peersFolder } from './queues.ts'

/** The last three kinds store a request before they answer it. */
export const peerKinds = ['openclaw', 'node-red', 'webhook', 'restate', 'durable-streams', 'webdis'] as const
export type PeerKind = (typeof peerKinds)[number]

/** `command`: starts the peer. */
export type Peer = { readonly command: readonly [string, ...string[]]; readonly version: string }

export type RunningPeer = {
  readonly port: number
  /** Microseconds of processor time of all processes of the peer, including processes that have ended. Linux only. */
  usage(): number
  stop(): void
}

export type PeerRequest = { readonly method: 'POST' | 'PUT'; readonly path: string }

/** `effect`: the URL that each event must reach, by a turn of an agent (`/v1` of a model) or a request. Only of the first two, and of Restate. */
type Place = { readonly dir: string; readonly port: number; readonly token: string; readonly effect?: string }

type Kind = {
  readonly pinned: string
  /** What the peer has done when it answers with success. */
  readonly means: string
  readonly install: string
  /** The request for an event. Default: a POST to the path of the benched hook. */
  readonly request?: PeerRequest
  find(): Peer | undefined
  /** Writes the configuration of the peer. Returns the rest of its command line. */
  configure(place: Place): { readonly args: readonly string[]; readonly env?: Readonly<Record<string, string>> }
}

const path = '/hooks/bench'
const text = '{{action}} #{{issue.number}} {{issue.title}} by {{sender.login}}: {{issue.html_url}}'
const startLimitMs = 120_000
/** One tick of USER_HZ, which is 100 on every Linux that Node runs on. */
const tickMicros = 10_000

const folder = peersFolder
const ownNode = join(folder, 'node_modules/.bin/node')
const node = existsSync(ownNode) ? ownNode : process.execPath
const renderInstallCommand = (name: string) =>
  `npm install --prefix ${folder} node@24.21.0 && PATH=${join(folder, 'node_modules/.bin')}:$PATH npm install --prefix ${folder} ${name}`

const kinds: Readonly<Record<PeerKind, Kind>> = {
  openclaw: {
    pinned: '2026.9.6',
    means: 'the text waits in memory, in a queue of 20 that drops the oldest; a restart loses it',
    install: renderInstallCommand('openclaw@2026.9.6'),
    find: () => findPackage('openclaw', 'openclaw.mjs'),
    configure({ dir, port, token, effect }) {
      const config = {
        gateway: { mode: 'local', bind: 'loopback', port, auth: { mode: 'token', token: `${token}-of-the-gateway` } },
        logging: { file: join(dir, 'openclaw.log') },
        hooks: {
          enabled: true,
          token,
          mappings: [
            {
              match: { path: 'bench' },
              ...(effect === undefined
                ? { action: 'wake', wakeMode: 'next-heartbeat', textTemplate: text }
                : { action: 'agent', messageTemplate: text, deliver: false }),
            },
          ],
        },
        ...(effect === undefined ? {} : buildOpenClawModel(dir, effect)),
      }
      writeFileSync(join(dir, 'openclaw.json'), JSON.stringify(config))
      const env = { HOME: dir, OPENCLAW_STATE_DIR: dir, OPENCLAW_CONFIG_PATH: join(dir, 'openclaw.json') }
      return { args: ['gateway', 'run', '--port', String(port)], env }
    },
  },
  'node-red': {
    pinned: '5.0.7',
    means: 'a function has made the text; nothing is kept',
    install: renderInstallCommand('node-red@5.0.7'),
    find: () => findPackage('node-red', 'red.js'),
    configure({ dir, port, token, effect }) {
      const settings = { uiHost: '127.0.0.1', uiPort: port, disableEditor: true, flowFile: 'flows.json', userDir: dir }
      writeFileSync(join(dir, 'settings.cjs'), `module.exports = ${JSON.stringify(settings)}`)
      const code =
        `if (msg.req.headers.authorization !== 'Bearer ${token}') return { ...msg, statusCode: 401, payload: { ok: false } }\n` +
        'const { action, issue, sender } = msg.payload\n' +
        "flow.set('text', action + ' #' + issue.number + ' ' + issue.title + ' by ' + sender.login + ': ' + issue.html_url)\n" +
        "return { ...msg, statusCode: 200, payload: { ok: true, mode: 'next-heartbeat' } }"
      const flows = [
        { id: 't', type: 'tab', label: 'bench' },
        {
          id: 'i',
          z: 't',
          type: 'http in',
          url: path,
          method: 'post',
          upload: false,
          wires: [effect === undefined ? ['f'] : ['f', 'q']],
        },
        { id: 'q', z: 't', type: 'http request', method: 'POST', ret: 'txt', url: effect ?? '', wires: [[]] },
        { id: 'f', z: 't', type: 'function', func: code, outputs: 1, wires: [['r']] },
        { id: 'r', z: 't', type: 'http response', statusCode: '', headers: {}, wires: [] },
      ]
      writeFileSync(join(dir, 'flows.json'), JSON.stringify(flows))
      return { args: ['--settings', join(dir, 'settings.cjs')], env: { HOME: dir } }
    },
  },
  webhook: {
    pinned: '2.8.0',
    means: 'a command, here /bin/true with the five fields, has ended; nothing is kept',
    install: 'apt-get install webhook',
    find: findWebhook,
    configure({ dir, port, token }) {
      const fields = ['action', 'issue.number', 'issue.title', 'sender.login', 'issue.html_url']
      const hook = {
        id: 'bench',
        'execute-command': '/bin/true',
        // otherwise webhook answers before it starts the command, and the commands run while the next server is measured
        'include-command-output-in-response': true,
        'pass-arguments-to-command': fields.map((name) => ({ source: 'payload', name })),
        'trigger-rule': {
          match: { type: 'value', value: `Bearer ${token}`, parameter: { source: 'header', name: 'Authorization' } },
        },
        'trigger-rule-mismatch-http-response-code': 401,
      }
      writeFileSync(join(dir, 'hooks.json'), JSON.stringify([hook]))
      return { args: ['-hooks', join(dir, 'hooks.json'), '-ip', '127.0.0.1', '-port', String(port)] }
    },
  },
  restate: {
    pinned: '1.7.12',
    means: 'the invocation of a service that does nothing is stored; it has no token and no template',
    install: renderInstallCommand('@restatedev/restate-server@1.7.12 @restatedev/restate-sdk@1.17.2'),
    request: { method: 'POST', path: '/Bench/accept/send' },
    find: () => findLauncher('restate', findVersion('@restatedev/restate-server')),
    configure: buildLauncherArguments,
  },
  'durable-streams': {
    pinned: '0.3.7',
    means: 'the body is at the end of a file, after fdatasync; it has no token and no template',
    install: renderInstallCommand('@durable-streams/server@0.3.7'),
    find: () => findLauncher('durable-streams', findVersion('@durable-streams/server')),
    configure: buildLauncherArguments,
  },
  webdis: {
    pinned: '0.1.9, with Redis 7.0',
    means: 'the body is in a list of Redis, with appendfsync always; it has no token and no template',
    install: 'apt-get install webdis redis-server',
    request: { method: 'PUT', path: '/RPUSH/deliveries' },
    find: () => findLauncher('webdis', findWebdis()),
    configure: buildLauncherArguments,
  },
}

/** The folder of scripts, which start the peers that consist of several processes. */
const launchers = join(import.meta.dirname, 'peers')

function findLauncher(name: string, version: string | undefined): Peer | undefined {
  return version === undefined ? undefined : { command: [node, join(launchers, `${name}.mjs`)], version }
}

function buildLauncherArguments({ dir, port, effect }: Place): { args: readonly string[] } {
  return { args: [folder, dir, String(port), ...(effect === undefined ? [] : [effect])] }
}

/** One model, without a price. */
function buildOpenClawModel(dir: string, baseUrl: string) {
  const limits = { contextWindow: 128_000, maxTokens: 4_096 }
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
  const model = { id: 'm', name: 'm', reasoning: false, input: ['text'], cost, ...limits }
  return {
    agents: { defaults: { workspace: join(dir, 'workspace'), model: { primary: 'bench/m' }, skipBootstrap: true } },
    models: { providers: { bench: { baseUrl, apiKey: 'bench', api: 'openai-completions', models: [model] } } },
  }
}

function findWebdis(): string | undefined {
  try {
    execFileSync('redis-server', ['--version'])
    const said = execFileSync('dpkg-query', ['--show', '--showformat=${Version}', 'webdis'], { encoding: 'utf8' })
    return said.replace(/\+.*/, '')
  } catch {
    return undefined
  }
}

export const findRequest = (kind: PeerKind): PeerRequest => kinds[kind].request ?? { method: 'POST', path }

export const findPeer = (kind: PeerKind): Peer | undefined => kinds[kind].find()

/** Writes the configuration. Returns the arguments of the command. */
export const configurePeer = (kind: PeerKind, place: Place) => kinds[kind].configure(place)

/** A sentence for each peer: the meaning of its answer, or how to install it. */
export function describePeers(): string[] {
  return peerKinds.map((kind) => {
    const { pinned, means, install: how } = kinds[kind]
    const peer = findPeer(kind)
    if (peer === undefined) return `${kind} is not installed. ${pinned}: ${how}`
    const runtime =
      kind === 'webhook' || kind === 'webdis'
        ? ''
        : ` on node ${execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()}`
    return `A success of ${kind} ${peer.version}${runtime} means: ${means}.`
  })
}

/** Resolves when the peer answers with success. */
export async function startPeer(kind: PeerKind, { dir, token, ...rest }: Omit<Place, 'port'>): Promise<RunningPeer> {
  const peer = findPeer(kind)
  if (peer === undefined) throw new Error(`${kind} is not installed: ${kinds[kind].install}`)
  mkdirSync(dir, { recursive: true })
  const port = await findPort()
  const { args, env = {} } = kinds[kind].configure({ dir, port, token, ...rest })
  const log = join(dir, 'output.log')
  const output = openSync(log, 'a')
  const [command, ...first] = peer.command
  const child = spawn(command, [...first, ...args], {
    cwd: dir,
    env: { PATH: `${dirname(node)}:${process.env['PATH'] ?? ''}`, ...env },
    stdio: ['ignore', output, output],
  })
  const stop = () => {
    process.off('exit', stop)
    killProcesses(child)
  }
  process.once('exit', stop)
  try {
    await waitUntilReady(child, { port, token, ...findRequest(kind) })
  } catch (error) {
    stop()
    throw new Error(`${kind} did not answer: ${String(error)}\n${readFileSync(log, 'utf8').slice(-2000)}`, {
      cause: error,
    })
  }
  return { port, usage: () => measureUsage(child), stop }
}

async function waitUntilReady(
  child: ChildProcess,
  { port, token, method, path: target }: Pick<Place, 'port' | 'token'> & PeerRequest,
): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const issue = { number: 1, title: 'ready?', html_url: 'https://forge.example/1' }
  const body = JSON.stringify({ action: 'opened', issue, sender: { login: 'bench' } })
  const url = `http://127.0.0.1:${port}${target}`
  for (let last = 'no answer', until = Date.now() + startLimitMs; ; await pause(200)) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`)
    if (Date.now() > until) throw new Error(last)
    const answer = await fetch(url, { method, headers, body }).catch((error: unknown) => String(error))
    if (typeof answer === 'string') last = answer
    else if (answer.ok) return void (await answer.text())
    else last = `status ${answer.status}: ${(await answer.text()).slice(0, 200)}`
  }
}

function findPackage(name: string, file: string): Peer | undefined {
  const version = findVersion(name)
  return version === undefined ? undefined : { command: [node, join(folder, 'node_modules', name, file)], version }
}

function findVersion(name: string): string | undefined {
  const file = join(folder, 'node_modules', name, 'package.json')
  if (!existsSync(file)) return undefined
  const { version }: { version: string } = JSON.parse(readFileSync(file, 'utf8'))
  return version
}

function findWebhook(): Peer | undefined {
  try {
    const said = execFileSync('webhook', ['-version'], { encoding: 'utf8' })
    return { command: ['webhook'], version: said.replace('webhook version', '').trim() }
  } catch {
    return undefined
  }
}

/** A free port. */
export async function findPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  await new Promise((resolve) => {
    server.close(resolve)
  })
  if (address === null || typeof address === 'string') throw new Error('no port is free')
  return address.port
}

type ProcessStat = { readonly pid: number; readonly parent: number; readonly ticks: number }

/** The process and its descendants. Empty on a system without /proc. */
function listProcesses({ pid }: ChildProcess): ProcessStat[] {
  const all = existsSync('/proc/self/stat') ? readdirSync('/proc').flatMap(readProcessStat) : []
  const family = all.filter((one) => one.pid === pid)
  // the loop appends to the list
  for (const { pid: parent } of family) family.push(...all.filter((one) => one.parent === parent))
  return family
}

function readProcessStat(name: string): ProcessStat[] {
  if (!/^\d+$/.test(name)) return []
  try {
    const text = readFileSync(`/proc/${name}/stat`, 'latin1')
    // splits after the name of the program, which may contain spaces; the next field is field 3 of proc_pid_stat(5)
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
    return [{ pid: Number(name), parent: Number(fields[1]), ticks }]
  } catch {
    // the process has ended
    return []
  }
}

function measureUsage(child: ChildProcess): number {
  const family = listProcesses(child)
  return family.length === 0 ? Number.NaN : family.reduce((sum, { ticks }) => sum + ticks, 0) * tickMicros
}

function killProcesses(child: ChildProcess): void {
  const pids = listProcesses(child).map(({ pid }) => pid)
  for (const pid of pids.length > 0 ? pids : [child.pid ?? 0]) {
    try {
      if (pid > 0) process.kill(pid, 'SIGKILL')
    } catch {
      // the process has ended
    }
  }
}
