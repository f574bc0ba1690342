import { homedir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import type { Context } from './context.ts'

/** The command line that runs this very program on this very config directory, as a shell takes it. */
export function toInvocation({ dir, env }: Context, args: readonly string[]): string {
  const script = process.argv[1] ?? 'hookloom'
  const isInstalled = basename(script) === 'hookloom'
  const isThroughNpx = env['npm_command'] === 'exec' || basename(dirname(script)) === '.bin'
  const near = relative(process.cwd(), script)
  const installed = isThroughNpx ? ['npx', 'hookloom'] : ['hookloom']
  const program = isInstalled ? installed : ['node', near.startsWith('..') ? script : near]
  const isFound =
    env['HOOKLOOM_HOME'] === dir || (env['HOOKLOOM_HOME'] === undefined && dir === join(homedir(), '.hookloom'))
  return [...program, ...args, ...(isFound ? [] : ['--config-dir', dir])].map(toShellWord).join(' ')
}

export function toShellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
