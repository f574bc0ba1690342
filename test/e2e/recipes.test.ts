// The mappings on the pages keep working in a busy hour: 25 requests about 25 subjects are 25 turns, and none waits for a limit.
import { parse } from 'jsonc-parser'
import { expect, test } from 'vitest'
import { pages, readBlock, readBlocks, readPage } from '../pages.ts'
import { chatCompletions } from './fakes/chat-completions.ts'
import { apiKey, replyWith, startFakeProvider } from './fakes/provider.ts'
import { readStore, startInside } from './inside.ts'
import { post } from './wire.ts'

type Fields = Record<string, unknown>

const requests = 25

/** Each mapping of an example that makes an agent turn, with the limits of the example. */
function listRecipes(): readonly { mapping: Fields; limits: Fields }[] {
  return pages
    .flatMap((page) => readBlocks(page))
    .filter(({ language, text }) => language === 'jsonc' && text.startsWith('{') && text.includes('"match"'))
    .flatMap(({ text }) => {
      // as: other tests check the examples against the schema of the configuration
      const example = parse(text) as { hooks?: { mappings?: Fields[] }; limits?: Fields }
      const mappings = example.hooks?.mappings ?? [example as Fields]
      return mappings.map((mapping) => ({ mapping, limits: example.limits ?? {} }))
    })
    .filter(
      ({ mapping: { action = 'agent', messageTemplate, transform } }) =>
        action === 'agent' && (messageTemplate ?? transform),
    )
}

/** What a mapping needs of its sender and of its chat, none of which limits turns. */
const outside = new Set(['match', 'verify', 'recover', 'channel', 'status'])

/** The mapping for token senders with any payload, and without the quiet period of its flow, which this test would only wait for. */
function toMapping(example: Fields, at: number): Fields {
  const inside = Object.entries(example).filter(([key]) => !outside.has(key))
  const { flow, ...fields } = Object.fromEntries(inside)
  const quick = typeof flow === 'object' ? { flow: { ...flow, delay: '0s' } } : {}
  return { ...fields, ...quick, id: `recipe-${at}`, match: { path: `recipe-${at}` }, deliver: false }
}

/** A payload that has a value of its own in each field that the mapping reads. */
function buildPayload(mapping: Fields, n: number): Fields {
  const payload: Fields = { project: 'billing', branch: `fix-${n}`, status: 'failed', url: 'https://ci.example.com' }
  for (const [, path = ''] of JSON.stringify(mapping).matchAll(/\{\{\s*([\w.[\]]+)/g)) {
    const names = path.replaceAll(/\[(\d+)\]/g, '.$1').split('.')
    let place = payload
    for (const [index, name] of names.slice(0, -1).entries())
      place = (place[name] ??= /^\d+$/.test(names[index + 1] ?? '') ? [] : {}) as Fields
    place[names.at(-1) ?? ''] = `${path} ${n}`
  }
  return payload
}

test('25 requests to each example of a mapping are 25 turns that end, with a model and the default limits', async () => {
  const recipes = listRecipes()
  expect(recipes.length).toBeGreaterThan(15)
  const mappings = recipes.map(({ mapping }, at) => toMapping(mapping, at))
  const fake = await startFakeProvider(chatCompletions)
  fake.answer = replyWith('pass')
  const gateway = await startInside({
    config: {
      hooks: { mappings },
      limits: Object.assign({}, ...recipes.map(({ limits }) => limits)) as object,
      channels: {
        webhook: {
          endpoints: { ci: { url: 'https://ci.example.com/callbacks', secret: 'a-secret-of-sixteen-bytes' } },
        },
      },
      models: { providers: { mine: { kind: 'openai-compatible', baseUrl: fake.baseUrl, apiKey } } },
      agents: { defaults: { model: 'mine/small' } },
    },
    files: { 'hooks/transforms/build.ts': readBlock('transforms/README.md', 'ts', '// build.ts') },
  })
  for (let n = 0; n < requests; n += 1) {
    const replies = await Promise.all(
      mappings.map((mapping) => post(gateway.port, `/hooks/${String(mapping['id'])}`, buildPayload(mapping, n))),
    )
    expect(replies.map(({ status }) => status)).toEqual(mappings.map(() => 200))
  }
  const readWaiting = () =>
    readStore(gateway.dir, async (store) => {
      const { queued, running } = (await store.counts()).jobs
      return { holds: await store.holds(), unfinished: queued + running }
    })
  await expect.poll(readWaiting, { timeout: 110_000, interval: 500 }).toEqual({ holds: [], unfinished: 0 })
  const records = await readStore(gateway.dir, (store) => store.deliveries({ limit: 9_999 }))
  const states = records.flatMap(({ jobs }) => jobs.map(({ state }) => state))
  expect(states).toEqual(Array.from({ length: requests * mappings.length }, () => 'done'))
  fake.close()
})

test('each page with an example that chooses a session key says that the turns of one key are limited', () => {
  const choosing = pages.filter((page) =>
    readBlocks(page).some(
      ({ language, text }) => /^(jsonc|ts)$/.test(language) && /"sessionKey"|\bsessionKey: `/.test(text),
    ),
  )
  expect(choosing).toContain('README.md')
  // the keys of presets are in their code
  const silent = [...choosing, 'presets/README.md'].filter(
    (page) => !/20\s+turns\s+(start\s+in\s+)?an\s+hour/.test(readPage(page)),
  )
  expect(silent).toEqual([])
})
