import { expect, test } from 'vitest'
import { createStage, resultOf, run } from './runtime-stage.ts'

test('smoke', async () => {
  const { load, write, runtime } = await createStage({ timeoutMs: 300 })
  await write({ 'good.ts': `export default ({ payload }) => ({ n: payload.n })`, 'loop.ts': `export default () => { while (true); }`, 'never.ts': 'export default () => new Promise(() => {})' })
  const t0 = performance.now()
  const all = await load('good.ts', 'loop.ts', 'never.ts')
  console.log('load', performance.now() - t0)
  let t = performance.now()
  console.log(await run(all['good.ts'], { n: 1 }), performance.now() - t)
  t = performance.now()
  console.log(await run(all['loop.ts'], { n: 1 }), performance.now() - t)
  t = performance.now()
  const mates = [1, 2, 3, 4, 5].map((n) => resultOf(all['good.ts'], { n }))
  console.log(await run(all['never.ts'], { n: 1 }), performance.now() - t, await Promise.all(mates))
  console.log(runtime.state())
  expect(1).toBe(1)
})
