// The settings of a command runner (its configuration and the defaults of its profile), and the arguments of one run.
import type { Thinking } from '../../../../core/model/action.ts'
import type { CommandOptions } from './options.ts'
import { Problem } from '../../../../core/model/problem.ts'
import { createPrintedReader, type PrintedReader } from './printed.ts'
import { profiles } from './profiles.ts'

export type CommandSpec = {
  readonly id: string
  readonly command: string
  readonly args: readonly string[]
  /** The arguments that continue a session; undefined if the command cannot: then every turn starts a new one. */
  readonly resumeArgs: readonly string[] | undefined
  readonly input: 'stdin' | 'arg'
  readonly output: 'text' | 'json' | 'jsonl'
  /** The configured path of the reply, for messages. */
  readonly textPath: string
  readonly read: PrintedReader
  readonly countsSession: boolean
  readonly readsMentions: boolean
  readonly toThinking: (level: Thinking) => string | undefined
  readonly env: Readonly<Record<string, string>>
  /** The values of the variables that the command gets only because the operator lists them. */
  readonly secrets: readonly string[]
  readonly killAfterMs: number
}

/** The variables that every command gets: search path, home, language, temporary folder. */
const commonEnv = ['PATH', 'HOME', 'LANG', 'TMPDIR']
/** The minimum length of a secret: shorter values are words such as "true". */
const minSecretLength = 8

/** Throws `config-invalid` with the name of the key. */
export function buildCommandSpec(
  id: string,
  config: CommandOptions,
  env: Readonly<Record<string, string | undefined>>,
): CommandSpec {
  const profile = config.profile === undefined ? undefined : profiles[config.profile]
  const command = config.command ?? profile?.command
  if (command === undefined) {
    throw new Problem('config-invalid', `runners.${id} has no program. Set runners.${id}.command, or its profile.`)
  }
  const args = config.args ?? profile?.args ?? []
  // the arguments of the operator replace those of the profile completely: both may set different rights
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
      `runners.${id}.output is "${output}", and the path of the reply is not set. Set runners.${id}.textField.`,
    )
  }
  const listed = pickEnv(env, config.env ?? [])
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
    env: { ...pickEnv(env, commonEnv), ...listed },
    secrets: Object.values(listed).filter((value) => value.length >= minSecretLength),
    killAfterMs: config.killAfterMs,
  }
}

function pickEnv(env: Readonly<Record<string, string | undefined>>, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = env[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

const placeholders = ['prompt', 'sessionId', 'provider', 'model', 'thinking', 'system'] as const
type Placeholder = (typeof placeholders)[number]

export type ArgumentValues = Readonly<Record<Placeholder, string | undefined>>

const placeholder = new RegExp(`\\{(${placeholders.join('|')})\\}`, 'g')

/**
 * Fills in `{prompt}` and the other placeholders once: placeholders inside a value are not filled in. An argument without a value is left
 * out, together with the flag before it, unless the argument is a flag itself, such as `--model={model}`.
 */
export function fillArguments(args: readonly string[], values: ArgumentValues): string[] {
  const filled: string[] = []
  for (const [index, arg] of args.entries()) {
    const text = fillArgument(arg, values)
    if (text !== undefined) filled.push(text)
    else if (!arg.startsWith('-') && isFlag(args[index - 1])) filled.pop()
  }
  return filled
}

export function hasPlaceholder(args: readonly string[], name: Placeholder): boolean {
  return args.some((arg) => arg.includes(`{${name}}`))
}

function fillArgument(arg: string, values: ArgumentValues): string | undefined {
  let isComplete = true
  const text = arg.replace(placeholder, (_, name: Placeholder) => {
    const value = values[name]
    isComplete &&= value !== undefined
    // the system ends an argument at a NUL, so Node refuses it
    return (value ?? '').replaceAll('\0', '\uFFFD')
  })
  if (!isComplete) return undefined
  // a value must not become a flag: otherwise the author of a prompt or a model name would choose the rights of the command
  return text.startsWith('-') && !arg.startsWith('-') ? ` ${text}` : text
}

/** Whether an argument is a flag that may have its value in the next argument. `--` ends the flags; a flag with a placeholder has its value. */
function isFlag(arg: string | undefined): boolean {
  return arg !== undefined && arg !== '--' && arg.startsWith('-') && arg.replace(placeholder, '') === arg
}
