// Names that outsiders choose, and that every JavaScript object has as inherited properties.
import { describe, expect, test } from 'vitest'
import { parseConfig } from '../../src/gateway/config/config.ts'
import { pickEnv, substituteEnv } from '../../src/gateway/config/env.ts'
import { checkRisks } from '../../src/gateway/config/warnings.ts'
import { findModelConfig } from '../../src/model/config/agents-rules.ts'
import { ConfigSchema } from '../../src/gateway/config/keys.ts'
import { findConfigWarnings } from '../../src/model/config/warnings.ts'
import { mergeResult } from '../../src/core/mapping/merge.ts'
import { listBundledRequests } from '../../src/gateway/replay/bundled.ts'

const words = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf', 'isPrototypeOf']
const token = 'a-token-with-more-than-24-characters'
const store = { url: 'postgres://h/d' }

const attempt = (look: () => unknown): unknown => {
  try {
    return look()
  } catch (error) {
    return error instanceof TypeError ? error : String(error)
  }
}

/** Objects with the name as a key come from JSON: a literal `__proto__` would set the prototype. */
const toObject = (name: string, value: unknown): object => Object.fromEntries([[name, value]])
const parse = (config: object) => parseConfig(JSON.stringify(config), {}).problems
const mergeField = (name: string) =>
  mergeResult({ fields: { kind: 'wake' }, keyOrigin: 'operator', response: undefined }, toObject(name, 1), 'hooks/x.ts')

const lookUps: Readonly<Record<string, (name: string) => unknown>> = {
  'the model of a provider': (name) => findModelConfig(`${name}/m`, ConfigSchema.parse({}).models) ?? 'none',
  'the alias of a model': (name) => findModelConfig(name, ConfigSchema.parse({}).models) ?? 'none',
  'the runner of an agent': (name) =>
    checkRisks(ConfigSchema.parse({ store, agents: { defaults: { runner: name } } }), { files: [] }),
  'a variable of the configuration': (name) => substituteEnv({ a: `\${${name}}` }, {}),
  'a variable of the transforms': (name) => pickEnv([name], {}),
  'a field of a result': mergeField,
  'the requests of a sender': (name) => listBundledRequests(new Set([name])),
  'the model of a mapping': (name) => parse({ hooks: { enabled: true, token, mappings: [{ model: `${name}/m` }] } }),
  'the agent of a mapping': (name) => parse({ hooks: { enabled: true, token, mappings: [{ agentId: name }] } }),
  'the channel of a mapping': (name) => parse({ hooks: { enabled: true, token, mappings: [{ channel: name }] } }),
  'the budget of an agent': (name) => parse({ agents: { defaults: { runner: 'claude', budgets: [name] } } }),
  'the scheme of a mapping': (name) =>
    parse({ hooks: { enabled: true, token, mappings: [{ verify: { scheme: name } }] } }),
  'a preset': (name) => parse({ hooks: { enabled: true, token, presets: [name] } }),
}

const findShadowed = (header: string) =>
  findConfigWarnings(
    ConfigSchema.parse({
      hooks: {
        mappings: [
          { match: { path: 'a', headers: toObject(header, 'x') }, messageTemplate: 'x' },
          { match: { path: 'a', headers: { 'x-other': 'y' } }, messageTemplate: 'x' },
        ],
      },
    }),
  )

describe('a name that every object inherits', () => {
  test.each(['constructor', 'valueOf'])('is a header of a condition like any other: %s', (name) => {
    expect(findShadowed(name)).toEqual(findShadowed('x-any'))
  })

  test.each(Object.entries(lookUps))('is as unknown as any other name: %s', (_, look) => {
    const describeFor = (name: string) => {
      const found = attempt(() => look(name))
      expect(found).not.toBeInstanceOf(TypeError)
      return JSON.stringify(found).replaceAll(name, 'NAME')
    }
    const expected = describeFor('zzzzzzzzzzzzzzzz')
    for (const word of words) expect([word, describeFor(word)]).toEqual([word, expected])
  })
})
