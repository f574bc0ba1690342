// hookloom test --coverage: which code of a transform its fixtures run, which only kept requests run, and which nothing runs.
import { expect, test, vi } from 'vitest'
import { runCommand } from './command.ts'
import { describeEngines } from './engines.ts'
import { gatewayToken, hookToken, makeConfigDir, post } from './gateway.ts'

const module = `import { shout } from './lib/words.ts'
type Order = { kind: string; note?: string | null }

enum Level { low, high }

export default async ({ payload }: { payload: Order }) => {
  debugger
  if (payload.kind === 'skip') {
    return null
  }
  if (payload.kind === 'seen') return { message: shout('seen') }
  await Promise.resolve()
  const label = payload.kind === 'never' ? 'unreachable so far' : 'usual'
  return { message: label + Level.low }
}
`
const helper = `export const shout = (text: string) => text.toUpperCase()
export function unused(text: string) {
  return text.toLowerCase()
}
export const useBoth = { shout, unused }
`
const buildFixture = (kind: string, decision: string) =>
  JSON.stringify({ request: { path: 'x', payload: { kind } }, expect: { decision } })
const files = {
  'hooks/transforms/x.ts': module
    .replace('import { shout }', 'import { shout, useBoth }')
    .replace('debugger', 'debugger; void useBoth'),
  'hooks/transforms/lib/words.ts': helper,
  'hooks/transforms/x.fixtures/usual.json': buildFixture('usual', 'accept'),
  'hooks/transforms/x.fixtures/skip.json': buildFixture('skip', 'skip'),
}
const mappings = [{ id: 'x', match: { path: 'x' }, transform: { module: 'x.ts' }, deliver: false }]

describeEngines('hookloom test --coverage', (start) => {
  test('coverage shows, in the author’s files, the branches that nothing runs and those that only kept requests run', async () => {
    const { dir, url, stop } = await start({ config: { hooks: { retain: 50, mappings } }, files })
    const to = { url, token: hookToken }
    await post(to, 'x', { kind: 'usual' })
    const { deliveryId } = await post(to, 'x', { kind: 'seen' }, { 'x-github-event': 'push' })
    await stop()
    const ran = await runCommand(['test', '--coverage', '--json'], { dir })
    expect(ran.code).toBe(0)
    const event = { hook: 'x', requests: 1, fixtures: 0, fields: 1, covered: 0 }
    expect(ran.json().at(-1)).toEqual({
      module: 'x.ts',
      coverage: {
        files: expect.arrayContaining([
          {
            file: 'x.ts',
            lines: expect.any(Number),
            covered: expect.any(Number),
            unreached: [{ line: 13, endLine: 13, text: expect.stringContaining("'unreachable so far'") }],
            onlyKept: [{ line: 11, endLine: 11, text: expect.stringContaining("message: shout('seen') }") }],
          },
          {
            file: 'lib/words.ts',
            lines: expect.any(Number),
            covered: expect.any(Number),
            unreached: [expect.objectContaining({ line: 2, endLine: 3 })],
            onlyKept: [expect.objectContaining({ line: 1 })],
          },
        ]),
        requests: {
          total: 2,
          covered: 1,
          uncovered: [{ source: 'github', event: 'push', count: 1, example: deliveryId }],
        },
        shapes: expect.arrayContaining([
          { ...event, source: null, event: null, fixtures: 2, covered: 1, missing: [] },
          { ...event, source: 'github', event: 'push', missing: [{ path: 'kind', kinds: ['string'] }] },
        ]),
      },
    })
    const shown = await runCommand(['test', '--coverage'], { dir })
    expect(shown.stdout).toMatch(/x\.ts:13 {2}'unreachable so far'.* reached by nothing/)
    expect(shown.stdout).toContain(`"hookloom capture ${String(deliveryId)}" makes a fixture`)
    expect(shown.stdout).toContain('\n  no event: 1 request came in; 2 fixtures have 1 of 1 field\n')
    expect(shown.stdout).toContain('2 passed, 0 failed')
  })

  test('fixtures have the same results with and without --coverage, and coverage is measured only with it', async () => {
    const dir = makeConfigDir({ config: { hooks: { mappings } }, files })
    const [plain, measured] = [await runCommand(['test'], { dir }), await runCommand(['test', '--coverage'], { dir })]
    expect(measured.stdout).toContain('No request of it is kept.')
    expect(plain.stdout).not.toContain('lines')
    for (const { stdout, code } of [plain, measured])
      expect([code, stdout]).toEqual([0, expect.stringContaining('2 passed, 0 failed')])
    expect((await runCommand(['test', '--coverage', '--watch'], { dir })).code).toBe(64)
  })
})

describeEngines('POST /api/coverage', (start) => {
  const headers = { authorization: `Bearer ${gatewayToken}` }
  const ask = async (adminUrl: string, module: string) =>
    (await (await fetch(`${adminUrl}/api/coverage?module=${module}`, { method: 'POST', headers })).json()) as object

  test('POST /api/coverage answers with the output of the command, and stores nothing', async () => {
    const { dir, url, adminUrl, stop } = await start({ config: { hooks: { retain: 50, mappings } }, files })
    await post({ url, token: hookToken }, 'x', { kind: 'usual' })
    await post({ url, token: hookToken }, 'x', { kind: 'seen' }, { 'x-github-event': 'push' })
    await vi.waitUntil(async () => (await runCommand(['shapes', '--json'], { dir })).json().length === 2, {
      timeout: 60_000,
    })
    const answer = await ask(adminUrl, 'x.ts')
    const count = async () => (await runCommand(['list', '--json'], { dir })).json().length
    expect(await count()).toBe(2)
    await stop()
    const [line] = (await runCommand(['test', '--coverage', '--json'], { dir })).json().slice(-1)
    expect(answer).toEqual({ ok: true, ...line, problem: null })
  })

  test('the coverage of a module that does not load has a reason, and an unknown module is refused', async () => {
    const broken = { ...files, 'hooks/transforms/x.ts': 'export default 7' }
    const { adminUrl } = await start({ config: { hooks: { mappings } }, files: broken })
    expect(await ask(adminUrl, 'x.ts')).toMatchObject({
      ok: true,
      coverage: null,
      problem: expect.stringContaining('must export a function'),
    })
    expect(await ask(adminUrl, '../x.ts')).toMatchObject({ ok: false, code: 'usage-invalid' })
  })
})

test('packages of the gateway are no files of the author', async () => {
  const code = `import { defineTransform } from 'hookloom'
import { z } from 'zod'
export default defineTransform({ payload: z.object({ kind: z.string() }), run: ({ payload }) => ({ message: payload.kind }) })
`
  const dir = makeConfigDir({
    config: { hooks: { mappings } },
    files: {
      'hooks/transforms/x.ts': code,
      'hooks/transforms/x.fixtures/usual.json': buildFixture('usual', 'accept'),
    },
  })
  const ran = await runCommand(['test', '--coverage', '--json'], { dir })
  expect(ran.code).toBe(0)
  const { coverage } = ran.json().at(-1) as unknown as { coverage: { files: { file: string }[] } }
  expect(coverage.files.map(({ file }) => file)).toEqual(['x.ts'])
})
