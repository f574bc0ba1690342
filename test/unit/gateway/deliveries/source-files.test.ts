// The source that reads the files of runs: one for all of them, as its section is now.
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineSource } from '../../../../src/define.ts'
import { createSourceReader } from '../../../../src/gateway/deliveries/source-files.ts'
import type { Generation } from '../../../../src/gateway/generation/generation.ts'
import type { OwnSource } from '../../../../src/model/source.ts'

const options = { password: 'pw_0123456789' }

function createReader() {
  const made: { readonly password: string; readonly signal: AbortSignal }[] = []
  const definition = defineSource({
    name: 'loft',
    about: 'Letters.',
    options: z.strictObject({ password: z.string() }),
    account: () => 'north',
    create({ password }, { signal }) {
      made.push({ password, signal })
      return {
        pass: async () => {},
        async *readFiles(refs) {
          for (const ref of refs) yield Buffer.from(`${password} ${ref}`)
        },
      }
    },
  })
  const config = { hooks: {}, sources: { loft: { kind: 'loft', ...options } } }
  const section = { kind: 'sound', name: 'loft', label: 'loft', definition, options, hash: 'a', describeThrown: String }
  // as: the reader reads these fields only
  const generation = () => ({ config }) as unknown as Generation
  const own = () => [section as unknown as OwnSource]
  const reader = createSourceReader({ dir: '/', generation, own, clock: Date.now })
  async function read(ref: string): Promise<string[]> {
    const { signal } = new AbortController()
    const found = reader.read({ source: 'loft', account: 'north', refs: [ref], maxBytes: 99, signal })
    if (typeof found === 'string') return [found]
    const texts: string[] = []
    for await (const bytes of found) texts.push(String(bytes))
    return texts
  }
  return { made, read, reader, config, section }
}

test('runs share one source, and a changed section gets another one', async () => {
  const { made, read, config, section } = createReader()
  expect(await Promise.all([read('a'), read('b')])).toEqual([['pw_0123456789 a'], ['pw_0123456789 b']])
  await read('c')
  expect(made).toHaveLength(1)
  section.options = { password: 'pw_9876543210' }
  config.sources.loft = { kind: 'loft', ...section.options }
  expect(await read('d')).toEqual(['pw_9876543210 d'])
  expect(made).toHaveLength(2)
})

test('what the source keeps open ends when the gateway stops, and not with a run', async () => {
  const { made, read, reader } = createReader()
  await read('a')
  expect(made[0]?.signal.aborted).toBe(false)
  reader.stop()
  expect(made[0]?.signal.aborted).toBe(true)
})
