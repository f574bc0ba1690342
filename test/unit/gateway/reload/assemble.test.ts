// Runners and channels are created when a configuration is loaded, so that a mistake is reported before the first reply.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { assemble } from '../../../../src/gateway/reload/assemble.ts'
import { writeFiles } from '../../core/transforms/stage.ts'
import { ConfigSchema, getOpenConfigSchema } from '../../../../src/gateway/config/keys.ts'

let dir: string

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'hookloom-assemble-'))
})
afterAll(async () => {
  await rm(dir, { recursive: true, force: true })
})

describe('invalid configurations', () => {
  test('a default recipient that its channel cannot address is refused', async () => {
    const channels = { telegram: { botToken: 't' }, default: { channel: 'telegram', to: 'nobody here' } }
    await expect(assemble(dir, ConfigSchema.parse({ channels }))).rejects.toThrow(
      /^channels\.default\.to: .*nobody here/,
    )
    const sound = { ...channels, default: { channel: 'telegram', to: '42' } }
    await expect(assemble(dir, ConfigSchema.parse({ channels: sound }))).resolves.toBeDefined()
  })

  test('a command runner that never gets its prompt is refused', async () => {
    const runners = { mine: { kind: 'command', command: 'agent', input: 'arg', args: ['--once'] } }
    await expect(assemble(dir, ConfigSchema.parse({ runners }))).rejects.toThrow(/runners\.mine/)
  })

  test('an unknown option of a preset is refused, and the most similar option is suggested', async () => {
    const assemblePreset = (entry: object) => assemble(dir, ConfigSchema.parse({ hooks: { presets: [entry] } }))
    await expect(assemblePreset({ name: 'github', scret: 's' })).rejects.toMatchObject({
      frame: 'hooks.presets[0]: "scret" is not an option of this preset. Did you mean secret?',
    })
    await expect(assemblePreset({ name: 'github', colour: 's' })).rejects.toMatchObject({
      frame:
        'hooks.presets[0]: "colour" is not an option of this preset. Options: path, instructions, secret, secrets, channel, to, status.',
    })
    await expect(assemblePreset({ name: 'github', secret: 'long-enough-for-all' })).resolves.toBeDefined()
  })

  test('an unknown option of a plugin is refused, and the most similar option is suggested', async () => {
    const plugin = `import { defineRunner } from 'hookloom'\nimport { z } from 'zod'
      const options = z.strictObject({ voice: z.string().optional(), pace: z.number().optional() })
      export default defineRunner({ name: 'parrot', about: 'Repeats.', options, create: () => ({ run: async () => ({ status: 'ok', text: '' }) }) })`
    await writeFiles(dir, { 'hooks/plugins/parrot.ts': plugin })
    const assembleRunner = (options: object) =>
      assemble(
        dir,
        getOpenConfigSchema().parse({
          plugins: ['./plugins/parrot.ts'],
          runners: { mine: { kind: 'parrot', ...options } },
        }),
      )
    await expect(assembleRunner({ voise: 'loud' })).rejects.toMatchObject({
      frame: 'runners.mine.voise is an unknown key. Did you mean voice?',
    })
    await expect(assembleRunner({ colour: 'red', pace: 'quick' })).rejects.toMatchObject({
      frame:
        'runners.mine.pace: expected a number, found a string\nrunners.mine.colour is an unknown key. Keys here: voice, pace.',
    })
    await expect(assembleRunner({ voice: 'loud' })).resolves.toBeDefined()
  })

  test('two mappings without an id are refused if the same secret would open both', async () => {
    const asana = { match: { path: 'x' }, verify: { scheme: 'asana' } }
    const assembleMappings = (...mappings: object[]) => assemble(dir, ConfigSchema.parse({ hooks: { mappings } }))
    await expect(assembleMappings(asana, { ...asana, action: 'wake' })).rejects.toThrow(
      /"mapping-1" and "mapping-2".* an id\./,
    )
    await expect(assembleMappings(asana, { ...asana, id: 'second' })).resolves.toBeDefined()
    await expect(assembleMappings(asana, { ...asana, match: { path: 'y' } })).resolves.toBeDefined()
  })

  test('two mappings with the same id are refused: those of a preset that is listed twice, and a mapping with the name of a preset', async () => {
    const assembleHooks = (hooks: object) => assemble(dir, ConfigSchema.parse({ hooks }))
    await expect(assembleHooks({ presets: ['gmail', 'gmail'] })).rejects.toThrow(
      /"gmail"\. hooks.presets has a preset twice/,
    )
    await expect(assembleHooks({ presets: ['gmail'], mappings: [{ id: 'gmail' }] })).rejects.toThrow(
      /the one in hooks\.mappings/,
    )
    await expect(assembleHooks({ presets: ['github', { name: 'github', path: 'other' }] })).resolves.toBeDefined()
  })
})
