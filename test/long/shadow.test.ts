// A hundred thousand runs of shadows that try to have an effect have none.
import { readdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { tryEffects } from '../unit/core/transforms/effects.ts'
import { createStage, readResult } from '../unit/core/transforms/runtime-stage.ts'

const runs = 100_000
const atOnce = 500

test(
  `${runs} runs of a shadow open no connection, start no process and write no file`,
  { timeout: 1_200_000 },
  async () => {
    let connections = 0
    const server = createServer((socket) => {
      connections += 1
      socket.destroy()
    })
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    onTestFinished(() => void server.close())
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const stage = await createStage({ isShadow: true, workers: 1, timeoutMs: 60_000 })
    await stage.write({ 'x.ts': tryEffects })
    const { 'x.ts': transform } = await stage.load('x.ts')
    const folder = join(stage.root, '..', '..')
    const before = readdirSync(folder)
    const counts = new Map<string, number>()
    for (let at = 0; at < runs; at += atOnce) {
      const runShadow = (index: number) =>
        readResult(transform, { at: at + index, port, folder, url: `http://127.0.0.1:${port}` })
      for (const result of await Promise.all(Array.from({ length: atOnce }, (_, index) => runShadow(index))))
        for (const outcome of Object.values(result ?? {}))
          counts.set(String(outcome), (counts.get(String(outcome)) ?? 0) + 1)
    }
    expect(Object.fromEntries(counts)).toEqual({ blocked: runs })
    expect(connections).toBe(0)
    expect(readdirSync(folder)).toEqual(before)
  },
)
