// Runners of the fixture commands, and a server that shows a test which of their processes are running.
import { chmodSync, readFileSync, realpathSync, symlinkSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { commandRunner } from '../../src/plugins/runners/command.ts'
import { createRunner } from '../unit/plugins/runners/stage.ts'
import { CommandOptions } from '../../src/plugins/runners/shared/command/options.ts'
import type { RunIO } from '../../src/model/runner.ts'
import { onFileEnd } from '../file-end.ts'
import { makeFolder as makeTemporary } from './gateway.ts'

const fixtures = resolve(import.meta.dirname, '../fixtures/commands')

export function findFixture(name: string): string {
  return join(fixtures, `${name}.mjs`)
}

/** The real path of a folder that is removed when the test file ends. */
export function makeFolder(): string {
  return realpathSync(makeTemporary())
}

/** A PATH in which `claude` and `codex` are the fixtures of that name. */
function makePath(): string {
  const bin = makeFolder()
  for (const name of ['claude', 'codex']) {
    chmodSync(findFixture(name), 0o755)
    symlinkSync(findFixture(name), join(bin, name))
  }
  return [bin, dirname(process.execPath), '/usr/bin', '/bin'].join(':')
}

type Settings = Partial<CommandOptions> & { readonly vars?: Readonly<Record<string, string>> }

/** A runner with the name `mine`. */
export function openRunner({ vars = {}, ...config }: Settings) {
  return createRunner(commandRunner, CommandOptions.parse(config), {
    id: 'mine',
    env: { PATH: makePath(), HOME: makeFolder(), LANG: 'C.UTF-8', ...vars },
  })
}

/** A runner for a fixture, run by this Node. */
export function openFixture(name: string, { args = [], ...config }: Settings = {}) {
  return openRunner({ command: process.execPath, args: [findFixture(name), ...args], ...config })
}

export function createIO(): { readonly io: RunIO; readonly lines: string[]; stop(reason?: unknown): void } {
  const lines: string[] = []
  const abort = new AbortController()
  return {
    io: { signal: abort.signal, log: (line) => void lines.push(line) },
    lines,
    stop: (reason) => abort.abort(reason),
  }
}

export const timeIsUp = new DOMException('The time is up.', 'TimeoutError')

/** The calls that a fake recorded, oldest first. */
export function readCalls(folder: string): { args: string[]; values: Record<string, unknown>; prompt: string }[] {
  return readFileSync(join(folder, 'calls.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}

export type ProcessWatch = {
  readonly port: string
  /** The pids of the next processes that connect. */
  waitForProcesses(count: number): Promise<number[]>
  /** Resolves when all connected processes have ended: the system closes their connections. */
  waitForEnd(): Promise<void>
}

export async function startProcessWatch(): Promise<ProcessWatch> {
  const heard: number[] = []
  let wake = () => {}
  const present = new Set<Socket>()
  const server = createServer((socket) => {
    present.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => {
      present.delete(socket)
      wake()
    })
    createInterface(socket)
      .on('error', () => {})
      .on('line', (line) => {
        heard.push(Number(line))
        wake()
      })
  })
  onFileEnd(() => server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    port: String(address.port),
    async waitForProcesses(count) {
      while (heard.length < count) await new Promise<void>((resolve) => (wake = resolve))
      return heard.splice(0, count)
    },
    async waitForEnd() {
      while (present.size > 0) await new Promise<void>((resolve) => (wake = resolve))
    },
  }
}

/** Whether a process with this pid exists and is not a zombie. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    // the system has no /proc, or the process has ended
    return process.platform !== 'linux'
  }
}
