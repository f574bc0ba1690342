// Effects that the thread of a shadow cannot have. Each attempt also runs in an ordinary thread, where it must succeed.
import { readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { tryEffects } from './effects.ts'
import { createStage, readResult, run } from './runtime-stage.ts'

async function countRequests(): Promise<{ url: string; connections: () => number }> {
  let connections = 0
  const server = createServer((_, response) => response.end('hello'))
  server.on('connection', () => (connections += 1))
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return { url: `http://127.0.0.1:${address.port}`, connections: () => connections }
}

test(
  'a shadow cannot reach the network, start a process or write a file, and the same code can do so elsewhere',
  { timeout: 120_000 },
  async () => {
    const { url, connections } = await countRequests()
    for (const isShadow of [true, false]) {
      const stage = await createStage({ isShadow, workers: 1, timeoutMs: 60_000 })
      const folder = join(stage.root, '..', '..')
      await stage.write({ 'x.ts': tryEffects })
      const { 'x.ts': transform } = await stage.load('x.ts')
      const before = connections()
      const found = await readResult(transform, { url, folder, port: Number(new URL(url).port) })
      const results = Object.entries(found ?? {})
      expect(results.length).toBeGreaterThan(20)
      for (const [name, result] of results)
        expect(`${name}: ${result}`).toBe(`${name}: ${isShadow ? 'blocked' : 'done'}`)
      expect(connections() - before === 0).toBe(isShadow)
      expect(readdirSync(folder).filter((name) => name.startsWith('effect-')).length === 0).toBe(isShadow)
    }
  },
)

test('a shadow reads files, and computes as the live code does', { timeout: 60_000 }, async () => {
  const stage = await createStage({ isShadow: true, workers: 1 })
  await stage.write({
    'x.ts': `import { readFileSync, openSync, readSync, closeSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createHash } from 'node:crypto'
import { Agent } from 'node:http'
import { Resolver } from 'node:dns'
new Agent({ keepAlive: true })
new Resolver()
const text = readFileSync(import.meta.filename ?? __filename, 'utf8')
export default async ({ payload }) => {
  const file = openSync('/dev/null', 'r')
  closeSync(file)
  const again = await readFile(import.meta.filename ?? __filename, 'utf8')
  return { message: createHash('sha256').update(payload.a).digest('hex') + (text === again) }
}`,
  })
  const { 'x.ts': transform } = await stage.load('x.ts')
  expect(transform?.problem).toBeUndefined()
  expect(await readResult(transform, { a: 'b' })).toEqual({
    message: '3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009dtrue',
  })
})

const hostile = {
  loop: 'for (;;);',
  memory: 'const kept = []; for (;;) kept.push(new Array(100_000).fill(Math.random()))',
  throws: "setTimeout(() => { throw new Error('late') }); throw new Error('no')",
  exit: 'process.exit(1)',
  large: "return { message: 'x'.repeat(500_000_000) }",
}

test(
  'a shadow that never ends, fills its memory or throws does not keep another shadow from running',
  { timeout: 120_000 },
  async () => {
    const stage = await createStage({ isShadow: true, workers: 1, timeoutMs: 1_000 })
    const modules = Object.entries(hostile).map(([name, code]) => [`${name}.ts`, `export default () => { ${code} }`])
    await stage.write({ ...Object.fromEntries(modules), 'fine.ts': 'export default () => ({})' })
    const all = await stage.load('fine.ts', ...Object.keys(hostile).map((name) => `${name}.ts`))
    for (const name of Object.keys(hostile)) {
      expect((await run(all[`${name}.ts`])).kind).toBe('failed')
      // a thread that starts on a busy machine may take longer than the limit of a call
      await vi.waitUntil(async () => (await run(all['fine.ts'])).kind === 'returned', { timeout: 60_000 })
    }
  },
)
