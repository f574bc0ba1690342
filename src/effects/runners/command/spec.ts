// A command runner as it is performed: its configuration, and its profile where the configuration is silent.
import type { Thinking } from '../../../model/action.ts'
import type { CommandRunnerConfig } from '../../../model/agents-config.ts'
import { Problem } from '../../../model/problem.ts'
import { hasPlaceholder } from './arguments.ts'
import { createPrintedReader, type PrintedReader } from './printed.ts'
import { profiles } from './profiles.ts'

export type CommandSpec = {
  readonly id: string
  readonly command: string
  readonly args: readonly string[]
  /** Undefined: it cannot continue a session, so every turn is a first one. */
  readonly resumeArgs: readonly string[] | undefined
  readonly input: 'stdin' | 'arg'
  readonly output: 'text' | 'json' | 'jsonl'
  /** Where its reply stands, for messages. */
  readonly textPath: string
  readonly read: PrintedReader
  readonly countsSession: boolean
  readonly readsMentions: boolean
  readonly toThinking: (level: Thinking) => string | undefined
  readonly env: Readonly<Record<string, string>>
  /** Values of the environment that only the operator's list let in. */
  readonly secrets: readonly string[]
  readonly killAfterMs: number
}

/** What every command sees: where programs are, where it keeps its files, which language, where to put what it throws away. */
const commonEnv = ['PATH', 'HOME', 'LANG', 'TMPDIR']
/** Shorter values are words, as "true" is, and not secrets. */
const minSecretLength = 8

/** Throws `config-invalid` that names the key. */
export function toCommandSpec(
  id: string,
  config: CommandRunnerConfig,
  env: Readonly<Record<string, string | undefined>>,
): CommandSpec {
  const profile = config.profile === undefined ? undefined : profiles[config.profile]
  const command = config.command ?? profile?.command
  if (command === undefined) {
    throw new Problem('config-invalid', `runners.${id} names no program. Set runners.${id}.command, or its profile.`)
  }
  const args = config.args ?? profile?.args ?? []
  // arguments of one's own are not continued with those of the profile, which may allow less, or more
  const resumeArgs = config.resumeArgs ?? (config.args === undefined ? profile?.resumeArgs : undefined)
  const input = config.input ?? profile?.input ?? (hasPlaceholder(args, 'prompt') ? 'arg' : 'stdin')
  for (const [key, given] of Object.entries({ args, resumeArgs })) {
    if (input === 'arg' && given !== undefined && !hasPlaceholder(given, 'prompt')) {
      throw new Problem(
        'config-invalid',
        `runners.${id}.${key} has no "{prompt}", and runners.${id}.input is "arg": the command would never see the prompt. ` +
          'Add "{prompt}", or set input to "stdin".',
      )
    }
  }
  const output = config.output ?? profile?.output ?? 'text'
  const text = config.textField === undefined ? profile?.text : { path: config.textField }
  if (output !== 'text' && text === undefined) {
    throw new Problem(
      'config-invalid',
      `runners.${id}.output is "${output}", and nothing says where the reply stands in it. Set runners.${id}.textField.`,
    )
  }
  const listed = pick(env, config.env ?? [])
  return {
    id,
    command,
    args,
    resumeArgs,
    input,
    output,
    textPath: text?.path ?? '',
    read: createPrintedReader({
      id,
      output,
      text,
      session: config.sessionField === undefined ? profile?.session : { path: config.sessionField },
      failure: profile?.failure ?? [],
      usage: profile?.usage,
    }),
    countsSession: profile?.countsSession ?? false,
    readsMentions: profile?.readsMentions ?? false,
    toThinking: (level) => (profile === undefined ? level : profile.thinking[level]),
    env: { ...pick(env, commonEnv), ...listed },
    secrets: Object.values(listed).filter((value) => value.length >= minSecretLength),
    killAfterMs: config.killAfterMs,
  }
}

function pick(env: Readonly<Record<string, string | undefined>>, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = env[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )
}
