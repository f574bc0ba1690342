// Runs one command to its end: `runCommand` in this process, `runBuilt` as an operator would.
import { spawn } from 'node:child_process'
import { Readable } from 'node:stream'
import { main } from '../../src/cli/main.ts'
import { mainFile, toChildEnv } from './gateway.ts'

export type CommandResult = {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  /** Standard output as one JSON object for each line. */
  json(): Record<string, unknown>[]
}

type RunOptions = { dir?: string; env?: Readonly<Record<string, string>> }

/** `dir`: the config directory, passed as `--config-dir`. `stdin`: empty by default. */
export async function runCommand(
  args: readonly string[],
  { dir, env, stdin = '', isTerminal }: RunOptions & { stdin?: string; isTerminal?: boolean } = {},
): Promise<CommandResult> {
  let stdout = ''
  let stderr = ''
  const code = await main(addDir(args, dir), {
    env: toChildEnv(env),
    script: mainFile,
    stdin: Readable.from([Buffer.from(stdin)]),
    ...(isTerminal === undefined ? {} : { isTerminal }),
    writeOut: (text) => (stdout += text),
    writeError: (text) => (stderr += text),
  })
  return toRunResult(code, stdout, stderr)
}

/** Runs the built program in its own process, to test its exit code, streams, signals and working directory. */
export function runBuilt(
  args: readonly string[],
  { dir, env, cwd }: RunOptions & { cwd?: string } = {},
): Promise<CommandResult> {
  return runProcess(process.execPath, [mainFile, ...addDir(args, dir)], {
    env: toChildEnv(env),
    ...(cwd === undefined ? {} : { cwd }),
  })
}

export function runProcess(
  file: string,
  args: readonly string[],
  options: { env: Record<string, string>; cwd?: string; uid?: number; gid?: number },
): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk))
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk))
    child.once('error', reject)
    child.once('close', (code) => resolve(toRunResult(code, stdout, stderr)))
  })
}

function addDir(args: readonly string[], dir: string | undefined): readonly string[] {
  return dir === undefined ? args : [...args, '--config-dir', dir]
}

function toRunResult(code: number | null, stdout: string, stderr: string): CommandResult {
  return { code, stdout, stderr, json: () => toObjects(stdout) }
}

function toObjects(stdout: string): Record<string, unknown>[] {
  const lines = stdout.split('\n').filter((line) => line !== '')
  // as: each line of --json is an object; a test that gets something else fails
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
}
