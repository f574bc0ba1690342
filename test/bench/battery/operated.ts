// Gateways as operators run them: `hookloom start` as a process of its own, whose log goes to a file.
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { token } from '../run.ts'

export type Operated = {
  readonly port: number
  readonly dir: string
  /** The size of its log. */
  countLogBytes(): number
  readMemory(): Memory
  /** From now on, `peakMb` is the most since this call. */
  resetPeak(): void
  /** Stops it as a service manager does. Rejects if it does not end with 0. */
  stop(): Promise<void>
  kill(): void
}

type Memory = { readonly nowMb: number; readonly peakMb: number }

export type OperatedOptions = {
  readonly folder: string
  /** The URL of the built package's `index.js`. */
  readonly built: string
  /** Keys of the configuration, in place of or in addition to the usual ones. */
  readonly config?: object
  readonly mappings?: readonly object[]
  readonly files?: Readonly<Record<string, string>>
}

const startMs = 60_000

export async function startOperated(options: OperatedOptions): Promise<Operated> {
  const dir = mkdtempSync(join(options.folder, 'operated-'))
  writeOperatedFiles(dir, options.files ?? {})
  writeFileSync(join(dir, 'hookloom.jsonc'), JSON.stringify(buildOperatedConfig(options)), { mode: 0o600 })
  const logFile = join(dir, 'start.log')
  const log = openSync(logFile, 'a')
  const main = fileURLToPath(new URL('main.js', options.built))
  // a variable of the shell that starts the bench must not change the gateway
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('HOOKLOOM_')))
  const child = spawn(process.execPath, [main, 'start', '--config-dir', dir], { env, stdio: ['ignore', log, log] })
  process.once('exit', () => child.kill('SIGKILL'))
  closeSync(log)
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  return {
    port: await waitForPort(child, logFile),
    dir,
    countLogBytes: () => statSync(logFile).size,
    readMemory: () => readMemory(child.pid),
    resetPeak: () => writeFileSync(`/proc/${child.pid}/clear_refs`, '5'),
    async stop() {
      child.kill('SIGTERM')
      const code = await ended
      if (code !== 0) throw new Error(`The gateway ended with ${code}: ${readFileSync(logFile, 'utf8').slice(-2_000)}`)
    },
    kill: () => void child.kill('SIGKILL'),
  }
}

/** Writes files by their paths below the config directory. */
export function writeOperatedFiles(dir: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, name)), { recursive: true })
    writeFileSync(join(dir, name), text)
  }
}

/** The wake that most rows send: `wake` of the package needs a text, which the bodies of the load do not have. */
function buildOperatedConfig({ config, mappings = [] }: OperatedOptions): object {
  return {
    // a proxy on this machine passes requests on, as in production
    server: { port: 0, adminPort: 0, trustedProxies: ['127.0.0.1'] },
    gateway: { token: 'the-token-of-the-operator' },
    hooks: { enabled: true, token, allowedSessionKeyPrefixes: ['hook:'], mappings },
    ...config,
  }
}

async function waitForPort(child: ChildProcess, logFile: string): Promise<number> {
  for (const end = Date.now() + startMs; Date.now() < end && child.exitCode === null; await pause(20)) {
    const url = /"url":"(http[^"]+)"/.exec(readFileSync(logFile, 'utf8'))?.[1]
    if (url !== undefined) return Number(new URL(url).port)
  }
  child.kill('SIGKILL')
  throw new Error(`The gateway does not listen: ${readFileSync(logFile, 'utf8').slice(-2_000)}`)
}

/** proc(5): `VmHWM` is the peak of `VmRSS`. */
function readMemory(pid: number | undefined): Memory {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const read = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) / 1_024
  return { nowMb: read('VmRSS'), peakMb: read('VmHWM') }
}
