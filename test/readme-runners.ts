// The generated parts of the runners' page.
import { profiles } from '../src/plugins/runners/shared/command/profiles.ts'
import { thinkingRows } from '../src/plugins/runners/shared/ai/thinking.ts'
import { thinkingLevels } from '../src/core/model/action.ts'

const kinds = ['openai', 'anthropic', 'google', 'openai-compatible'] as const

export function toRunnerTables(): Record<string, string> {
  return { thinking: toThinkingTable(), profiles: toProfiles() }
}

function toThinkingTable(): string {
  const rows = kinds.flatMap((kind) =>
    thinkingRows[kind].map(({ models, levels }) => [
      kind,
      models,
      ...thinkingLevels.map((level) => toWords(levels[level])),
    ]),
  )
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const head = ['kind', 'models', ...thinkingLevels.map((level) => `\`${level}\``)]
  return `${[line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)].join('\n')}\n`
}

/** Only the values: `adaptive, low` or `1024 tokens`. */
function toWords(options: object): string {
  const values = Object.values(options).flatMap((value: unknown) =>
    typeof value === 'object' && value !== null ? Object.values(value) : [value],
  )
  const words = values.map((value) => (typeof value === 'number' ? `${value} tokens` : String(value)))
  return words.filter((word) => word !== 'enabled').join(', ') || '–'
}

/** One block for each profile, in the form of a configuration. */
function toProfiles(): string {
  return Object.entries(profiles)
    .map(([name, { args, resumeArgs }]) =>
      ['```jsonc', `// ${name}`, `"args": ${toList(args)},`, `"resumeArgs": ${toList(resumeArgs)}`, '```\n'].join('\n'),
    )
    .join('')
}

/** A flag and its value stay on one line. */
function toList(args: readonly string[]): string {
  const lines = args.reduce<string[]>((all, arg) => {
    const text = JSON.stringify(arg)
    const last = all.at(-1)
    const isFull = arg.startsWith('-') && (last?.length ?? 0) + text.length > 90
    return last === undefined || isFull ? [...all, text] : [...all.slice(0, -1), `${last}, ${text}`]
  }, [])
  return `[\n  ${lines.join(',\n  ')}\n]`
}
