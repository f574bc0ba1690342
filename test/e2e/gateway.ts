// Runs a gateway like an operator: the built command as a child process, in its own config directory.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { loadConfig } from '../../src/gateway/config/config.ts'
import { onFileEnd } from '../file-end.ts'

export const hookToken = 'hook-secret-0123456789abcdefghij'
export const gatewayToken = 'gateway-secret-0123456789abcdefgh'
export const mainFile = resolve(import.meta.dirname, '../../dist/main.js')

export type Gateway = {
  /** Base of the hook endpoints, with the prefix: `${url}/wake`. */
  readonly url: string
  readonly adminUrl: string
  readonly token: string
  readonly gatewayToken: string
  readonly dir: string
  readonly child: ChildProcess
  /** All output so far, of both streams. */
  output(): string
  /** Resolves when the output matches; rejects if the gateway ends before that. */
  printed(pattern: RegExp): Promise<void>
  /** Sends SIGTERM, and resolves with the exit code. */
  stop(): Promise<number | null>
  /** Sends SIGKILL. */
  kill(): Promise<void>
}

export type GatewayOptions = {
  /** An existing directory. If it has a configuration, that is kept unless `config` is given. */
  readonly dir?: string
  /** Merged into the base configuration, objects key by key. `null`: no configuration is written. */
  readonly config?: object | null
  /** Further files by their path in the directory, such as `hooks/transforms/x.ts`. */
  readonly files?: Readonly<Record<string, string>>
  readonly command?: 'start' | 'dev'
  /** Further arguments of the command. */
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Options of node itself, such as `--expose-gc`. */
  readonly nodeArgs?: readonly string[]
  /** An installed program instead of the built one, and the Node that runs it. */
  readonly program?: { readonly node: string; readonly main: string }
}

/** A folder that is removed when the test file ends. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'hookloom-'))
  onFileEnd(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export function writeFiles(dir: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, name)), { recursive: true })
    writeFileSync(join(dir, name), text)
  }
}

/** A config directory with the base configuration, any free ports and fixed tokens. */
export function makeConfigDir(options: Pick<GatewayOptions, 'config' | 'files'> = {}): string {
  const dir = makeFolder()
  writeConfig(dir, options.config)
  writeFiles(dir, options.files ?? {})
  return dir
}

export async function startGateway(options: GatewayOptions = {}): Promise<Gateway> {
  const dir = options.dir ?? makeFolder()
  if (options.dir === undefined || options.config !== undefined) writeConfig(dir, options.config)
  writeFiles(dir, options.files ?? {})
  const { node, main } = options.program ?? { node: process.execPath, main: mainFile }
  const command = [main, options.command ?? 'start', ...(options.args ?? []), '--config-dir', dir]
  const launched = await launch([node, ...(options.nodeArgs ?? []), ...command], readAddress, options.env)
  const { child, exited, output, stop, kill, found: address } = launched
  const { config } = loadConfig({ dir, env: toChildEnv(options.env) })
  return {
    ...address,
    token: config.hooks.token ?? '',
    gatewayToken: config.gateway.token ?? '',
    dir,
    child,
    output,
    printed: (pattern) =>
      new Promise((done, failed) => {
        const look = () => {
          if (pattern.test(output())) done()
        }
        child.stdout.on('data', look)
        child.stderr.on('data', look)
        const fail = () => failed(new Error(`The gateway ended before it printed ${String(pattern)}:\n${output()}`))
        void exited.then(fail)
        look()
      }),
    stop,
    kill,
  }
}

/** Starts a program, and resolves when `find` finds in its output, of both streams, that it listens. Rejects if it ends before. */
export async function launch<Found>(
  [program, ...args]: readonly [string, ...string[]],
  find: (text: string) => Found | undefined,
  env?: Readonly<Record<string, string>>,
) {
  const child = spawn(program, args, { env: toChildEnv(env), stdio: ['ignore', 'pipe', 'pipe'] })
  onFileEnd(() => child.kill('SIGKILL'))
  let text = ''
  const exited = new Promise<number | null>((done) => child.once('close', (code) => done(code)))
  const found = await new Promise<Found>((done, failed) => {
    const read = (chunk: string) => {
      text += chunk
      const seen = find(text)
      if (seen !== undefined) done(seen)
    }
    child.stdout.setEncoding('utf8').on('data', read)
    child.stderr.setEncoding('utf8').on('data', read)
    void exited.then((code) => failed(new Error(`The program ended with ${code} before it listened:\n${text}`)))
  })
  return {
    child,
    exited,
    found,
    output: () => text,
    /** Sends SIGTERM, and resolves with the exit code. */
    stop() {
      child.kill('SIGTERM')
      return exited
    },
    /** Sends SIGKILL. */
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** The rest of the session keys that begin with a text, one for each run, the oldest first. */
export async function readSessionIds({ adminUrl }: Pick<Gateway, 'adminUrl'>, prefix: string): Promise<string[]> {
  const headers = { authorization: `Bearer ${gatewayToken}` }
  const answer = await fetch(`${adminUrl}/api/deliveries?limit=200`, { headers })
  // as: the tests of the API check its answers
  const { deliveries } = (await answer.json()) as { deliveries: { became: { sessionKey: string }[] }[] }
  return deliveries.flatMap(({ became }) => became.map(({ sessionKey }) => sessionKey.replace(prefix, '')))
}

/** Posts JSON with the hook token. Returns the body of the answer. */
export async function post(
  { url, token }: Pick<Gateway, 'url' | 'token'>,
  hook: string,
  payload: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Record<string, unknown>> {
  const answer = await fetch(`${url}/${hook}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(payload),
  })
  // as: every body of the gateway is a JSON object, and a test fails if it reads anything else
  return (await answer.json()) as Record<string, unknown>
}

/** `start` logs one JSON line, `dev` prints a table. */
function readAddress(text: string): { url: string; adminUrl: string } | undefined {
  const url = /"url":"(http[^"]+)"/.exec(text)?.[1] ?? /^\s*Hooks\s+(http\S+)$/m.exec(text)?.[1]
  const adminUrl = /"adminUrl":"(http[^"]+)"/.exec(text)?.[1] ?? /^\s*Admin\s+(http\S+)$/m.exec(text)?.[1]
  return url === undefined || adminUrl === undefined ? undefined : { url, adminUrl }
}

/** The environment of the tests without variables that would affect a gateway. */
export function toChildEnv(env: Readonly<Record<string, string>> = {}): Record<string, string> {
  const inherited = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !/^(HOOKLOOM_|VITEST|NODE_ENV)/.test(entry[0]),
  )
  return { ...Object.fromEntries(inherited), NO_COLOR: '1', ...env }
}

export function writeConfig(dir: string, config: object | null | undefined): void {
  if (config === null) return
  const base = {
    server: { port: 0, adminPort: 0 },
    gateway: { token: gatewayToken },
    // long enough that an answer always has the outcome, even on a busy machine; tests of early answers set a short time
    hooks: { enabled: true, token: hookToken, answerWithinMs: 60_000 },
    channels: { default: { channel: 'console' } },
  }
  writeFileSync(join(dir, 'hookloom.jsonc'), JSON.stringify(mergeConfig(base, config ?? {}), undefined, 2), {
    mode: 0o600,
  })
}

function mergeConfig(base: object, over: object): object {
  const merged = new Map<string, unknown>(Object.entries(base))
  for (const [key, value] of Object.entries(over)) {
    const below = merged.get(key)
    merged.set(key, isPlain(below) && isPlain(value) ? mergeConfig(below, value) : value)
  }
  return Object.fromEntries(merged)
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * A free port below those that the system gives to connections (net.ipv4.ip_local_port_range): such a connection could take the port of a gateway that is
 * killed and started again.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + randomInt(12_000)
    const server = createServer()
    const isFree = await new Promise((done) => {
      server.once('error', () => done(false))
      server.listen(port, '127.0.0.1', () => done(true))
    })
    if (!isFree) continue
    await new Promise((done) => server.close(done))
    return port
  }
}

/** The memory of a process in MB, on Linux. `VmRSS`: now. `VmHWM`: the most so far. */
export function readMemoryMb(pid: number | undefined, name: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) / 1_024
}
