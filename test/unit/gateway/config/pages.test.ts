// The gateway accepts every configuration that a page shows. A part of a configuration is first put into a whole one.
import { parse, type ParseError } from 'jsonc-parser'
import { expect, test } from 'vitest'
import { parseConfig } from '../../../../src/gateway/config/config.ts'
import { CommandOptions } from '../../../../src/plugins/runners/shared/command/options.ts'
import { builtInChannels, ConfigSchema, getOpenConfigSchema } from '../../../../src/gateway/config/keys.ts'
import { HooksConfig } from '../../../../src/model/config/hooks.ts'
import { Mapping } from '../../../../src/core/model/mapping.ts'
import { pages, readBlocks } from '../../../pages.ts'

type Part = Record<string, unknown>

/** A value in the form that its key requires. */
function toValue(name: string): string {
  if (name === 'HEARTBEAT_URL') return 'https://monitor.example/ping/secret'
  if (name === 'MCP_EVENTS_WEBHOOK_SECRET') return '5f'.repeat(32)
  if (name === 'HOOKLOOM_RELAY_KEY') return 'A'.repeat(43)
  return name === 'DATABASE_URL' ? 'postgres://user:password@db/hooks' : `value-of-${name}`
}

/** Where a part of a configuration belongs, found by the schema that has all of its keys. */
const places: readonly { readonly keys: readonly string[]; readonly put: (part: Part) => Part }[] = [
  { keys: Object.keys(ConfigSchema.shape), put: (part) => part },
  { keys: Object.keys(Mapping.shape), put: (part) => ({ hooks: { mappings: [part] } }) },
  { keys: Object.keys(HooksConfig.shape), put: (part) => ({ hooks: part }) },
  {
    keys: ['default', 'retry', 'own', ...builtInChannels.map(({ name }) => name)],
    put: (part) => ({ channels: part }),
  },
  {
    keys: Object.keys(CommandOptions.shape),
    put: (part) => ({ runners: { mine: { kind: 'command', command: 'agent', ...part } } }),
  },
]

function isWhole(text: string): boolean {
  return text.trimStart().startsWith('{')
}

function toConfig(text: string): Part {
  const errors: ParseError[] = []
  const part: Part = parse(isWhole(text) ? text : `{${text}}`, errors, { allowTrailingComma: true })
  expect(errors).toEqual([])
  const place = places.find(({ keys }) => Object.keys(part).every((key) => keys.includes(key)))
  // otherwise the part consists of runners by name
  return place?.put(part) ?? { runners: part }
}

const shown = pages.flatMap((page) =>
  readBlocks(page)
    .filter(({ language }) => language === 'jsonc')
    .map(({ text, section }) => ({ page, section, text })),
)

test('the pages have configurations to check', () => {
  expect(shown.length).toBeGreaterThan(50)
})

test.each(shown)('the example of $page under "$section" is a valid configuration', ({ text }) => {
  const filled = toConfig(text.replaceAll(/\$\{(\w+)\}/g, (_, name: string) => toValue(name)))
  const schema = 'plugins' in filled ? getOpenConfigSchema() : ConfigSchema
  expect(schema.safeParse(filled).error?.issues).toBeUndefined()
  // a part of a configuration omits other parts, so only a whole one is parsed
  if (!isWhole(text)) return
  const named = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => [name, toValue(name)])
  expect(parseConfig(JSON.stringify(toConfig(text)), Object.fromEntries(named)).problems).toEqual([])
})
