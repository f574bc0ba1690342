// One command, run as an operator runs it: the built file, to its end.
import { spawn } from 'node:child_process'
import { mainFile, toChildEnv } from './gateway.ts'

export type Ran = {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  /** Standard output as one JSON object a line. */
  json(): Record<string, unknown>[]
}

/** `dir`: the config directory, given as `--config-dir`. */
export function runCommand(
  args: readonly string[],
  { dir, env, cwd }: { dir?: string; env?: Readonly<Record<string, string>>; cwd?: string } = {},
): Promise<Ran> {
  const all = dir === undefined ? args : [...args, '--config-dir', dir]
  return runProcess(process.execPath, [mainFile, ...all], {
    env: toChildEnv(env),
    ...(cwd === undefined ? {} : { cwd }),
  })
}

export function runProcess(
  file: string,
  args: readonly string[],
  options: { env: Record<string, string>; cwd?: string },
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk))
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk))
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, stdout, stderr, json: () => toObjects(stdout) }))
  })
}

function toObjects(stdout: string): Record<string, unknown>[] {
  const lines = stdout.split('\n').filter((line) => line !== '')
  // each line of --json is an object: a test that reads another thing fails there
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
}
