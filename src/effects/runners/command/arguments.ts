// The arguments of a command. What is filled in stays one argument: it is never split, never a flag, and no shell sees it.

export const placeholders = ['prompt', 'sessionId', 'provider', 'model', 'thinking', 'system'] as const
type Placeholder = (typeof placeholders)[number]

export type ArgumentValues = Readonly<Record<Placeholder, string | undefined>>

const placeholder = new RegExp(`\\{(${placeholders.join('|')})\\}`, 'g')

/**
 * Fills in `{prompt}` and the like, once: what a value says is not filled in again. An argument that lacks a value is left
 * out; so is the flag right before it, unless the argument is a flag itself, as `--model={model}` is.
 */
export function fillArguments(args: readonly string[], values: ArgumentValues): string[] {
  const filled: string[] = []
  for (const [index, arg] of args.entries()) {
    const text = fill(arg, values)
    if (text !== undefined) filled.push(text)
    else if (!arg.startsWith('-') && isFlag(args[index - 1])) filled.pop()
  }
  return filled
}

export function hasPlaceholder(args: readonly string[], name: Placeholder): boolean {
  return args.some((arg) => arg.includes(`{${name}}`))
}

function fill(arg: string, values: ArgumentValues): string | undefined {
  let isComplete = true
  const text = arg.replace(placeholder, (_, name: Placeholder) => {
    const value = values[name]
    isComplete &&= value !== undefined
    // the system ends an argument at a NUL, so Node refuses one
    return (value ?? '').replaceAll('\0', '\uFFFD')
  })
  if (!isComplete) return undefined
  // a value must not become a flag: the sender of a prompt, of a model too, would choose what the command may do
  return text.startsWith('-') && !arg.startsWith('-') ? ` ${text}` : text
}

/** A flag as the operator wrote it. `--` is none: it ends them. */
function isFlag(arg: string | undefined): boolean {
  return arg !== undefined && arg !== '--' && arg.startsWith('-') && arg.replace(placeholder, '') === arg
}
