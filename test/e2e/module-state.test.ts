// `context.state` of transforms, through the gateway: it is stored with the decision, and only with it.
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { stateLimits } from '../../src/core/model/transform-state.ts'
import { readDeliveryId } from './answers.ts'
import { runCommand } from './command.ts'
import { type Inside, readStore, startInside } from './inside.ts'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { onFileEnd } from '../file-end.ts'
import { readBlock } from '../pages.ts'
import { post } from './wire.ts'

const count = `export default async ({ payload }, { state, log, replay }) => {
  const seen = (await state.get('seen:' + payload.id)) ?? 0
  if (payload.waitMs) await new Promise((done) => setTimeout(done, payload.waitMs))
  state.set('seen:' + payload.id, seen + 1, { for: payload.for ?? '1h' })
  log('seen ' + seen + (replay ? ' in a replay' : ''))
  if (payload.fail) throw new Error('after set')
  if (payload.skip) return null
  return { message: 'seen ' + seen, ...(payload.dedupe && { dedupe: { key: 'one', for: '1h' } }) }
}`
const loop = `export default async ({ payload }, { state }) => {
  if (payload.loop) for (let index = 0; index < payload.loop; index += 1) state.set('k' + (index % payload.keys), index)
  if (payload.reads) for (let index = 0; index < payload.reads; index += 1) await state.get('k' + index)
  if ('key' in payload) state.set(payload.key, 1)
  if ('bytes' in payload) state.set('big', 'x'.repeat(payload.bytes))
  if (payload.odd) state.set('odd', { at: new Date(), run: () => {} })
  return null
}`
const files = {
  'hooks/transforms/count.ts': count,
  'hooks/transforms/loop.ts': loop,
  'hooks/transforms/items.ts': `export default async ({ payload }, { state }) => {
    const total = ((await state.get('total')) ?? 0) + payload.items[0].n
    state.set('total', total)
    return total > 2 ? { message: 'total ' + total } : null
  }`,
}
const mappings = [
  ...['count', 'loop'].map((name) => ({
    id: name,
    match: { path: name },
    deliver: false,
    transform: { module: `${name}.ts` },
  })),
  { id: 'items', match: { path: 'items' }, forEach: 'items', deliver: false, transform: { module: 'items.ts' } },
]
const config = { hooks: { mappings } }
const postTo = (gateway: Inside, hook: string, body: object) => post(gateway.port, `/hooks/${hook}`, body)
const readState = async (dir: string, ...args: string[]) =>
  (await runCommand(['state', ...args, '--json'], { dir })).stdout
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => z.object({ key: z.string(), value: z.json() }).parse(JSON.parse(line)))
const readNewest = (dir: string, limit: number) => readStore(dir, (store) => store.deliveries({ limit }))

describe('context.state', () => {
  test('a value of context.state is stored with an accepted or skipped delivery, and not with a parked one or a duplicate', async () => {
    const gateway = await startInside({ config, files })
    const readValues = async () => (await readState(gateway.dir, 'count.ts')).map(({ value }) => value)
    expect((await postTo(gateway, 'count', { id: 'a' })).status).toBe(200)
    expect((await postTo(gateway, 'count', { id: 'a', skip: true })).status).toBe(204)
    expect(await readValues()).toEqual([2])
    expect((await postTo(gateway, 'count', { id: 'a', fail: true })).body).toContain('parked')
    expect(await readValues()).toEqual([2])
    await postTo(gateway, 'count', { id: 'a', dedupe: true })
    expect((await postTo(gateway, 'count', { id: 'a', dedupe: true })).status).toBe(204)
    expect(await readValues()).toEqual([3])
    await gateway.stop()
    const next = await startInside({ dir: gateway.dir })
    const answer = await postTo(next, 'count', { id: 'a' })
    const { stdout } = await runCommand(['show', readDeliveryId(answer)], { dir: gateway.dir })
    expect(stdout).toContain('seen 3')
    expect(await readValues()).toEqual([4])
  })

  test('concurrent deliveries each add to a count in context.state once, even if their code ends after the answer', async () => {
    const gateway = await startInside({ config: { hooks: { mappings, answerWithinMs: 400 } }, files })
    const fast = Array.from({ length: 40 }, () => postTo(gateway, 'count', { id: 'x' }))
    const slow = Array.from({ length: 4 }, () => postTo(gateway, 'count', { id: 'x', waitMs: 600 }))
    const answers = await Promise.all([...fast, ...slow])
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    const settled = async () => (await readStore(gateway.dir, (store) => store.counts())).deliveries
    await expect.poll(settled, { timeout: 60_000 }).toMatchObject({ accepted: 44, pending: 0 })
    expect(await readState(gateway.dir, 'count.ts')).toMatchObject([{ key: 'seen:x', value: 44 }])
    const texts = (await readNewest(gateway.dir, 44)).map(({ log }) => Number(log[0]?.replace('seen ', '')))
    expect(texts.toSorted((one, other) => one - other)).toEqual(Array.from({ length: 44 }, (_, index) => index))
  })

  test.skipIf(whyNoPostgres !== undefined)(
    'two gateways on one store add to the same count in context.state',
    async () => {
      const { url, drop } = await newSchema()
      onFileEnd(drop)
      const shared = { ...config, store: { url } }
      const one = await startInside({ config: shared, files })
      const two = await startInside({ config: shared, files })
      const both = Array.from({ length: 30 }, (_, index) => postTo(index % 2 ? one : two, 'count', { id: 'x' }))
      await Promise.all(both)
      await expect
        .poll(async () => (await readState(one.dir, 'count.ts')).map(({ value }) => value), { timeout: 60_000 })
        .toEqual([30])
    },
  )

  test('an item of forEach sees the values that earlier items have set', async () => {
    const gateway = await startInside({ config, files })
    const items = [1, 2, 3].map((n) => ({ n }))
    await postTo(gateway, 'items', { items })
    expect(await readState(gateway.dir, 'items.ts')).toMatchObject([{ key: 'total', value: 6 }])
    const [delivery] = await readNewest(gateway.dir, 1)
    expect(delivery?.jobs).toHaveLength(2)
  })

  test('a value of context.state is gone when its time is over, and a command deletes one value or all values of a module', async () => {
    let now = Date.now()
    const gateway = await startInside({ config, files, clock: () => now })
    for (const id of ['a', 'b', 'c']) await postTo(gateway, 'count', { id })
    await postTo(gateway, 'count', { id: 'd', for: '10m' })
    now += 11 * 60_000
    await postTo(gateway, 'count', { id: 'd' })
    expect((await readState(gateway.dir, 'count.ts', 'seen:d'))[0]?.value).toBe(1)
    const run = async (...args: string[]) => runCommand(['state', ...args], { dir: gateway.dir })
    expect((await run('drop', 'count.ts', 'seen:b')).stdout).toContain('1 value is deleted')
    expect((await run('drop', 'count.ts', 'seen:b')).stderr).toContain('has no value with the key "seen:b"')
    expect((await run('drop', 'loop.ts')).stdout).toContain('has set no value')
    await postTo(gateway, 'count', { id: 'b' })
    expect((await run()).stdout).toMatch(/count\.ts\s+4\s/)
    expect((await run('count.ts', 'seen:b')).stdout.trim()).toBe('1')
    expect((await run('drop', 'count.ts')).stdout).toContain('4 values are deleted')
    expect((await run()).stdout).toContain('No transform has set a value.')
  })

  test('a call that exceeds a limit of context.state parks its delivery, and a loop of 200,000 writes within the limits succeeds', async () => {
    const gateway = await startInside({ config, files })
    expect((await postTo(gateway, 'loop', { loop: 200_000, keys: stateLimits.keysOfCall })).status).toBe(204)
    expect(await readState(gateway.dir, 'loop.ts')).toHaveLength(stateLimits.keysOfCall)
    const wrong: [object, string][] = [
      [{ loop: 500, keys: stateLimits.keysOfCall + 1 }, 'at most 100 keys'],
      [{ reads: 101 }, 'at most 100 keys'],
      [{ key: 'x'.repeat(201) }, '1 to 200 characters'],
      [{ key: 'a\nb' }, 'without control characters'],
      [{ key: '' }, '1 to 200 characters'],
      [{ key: 7 }, 'a text as its key'],
      [{ bytes: stateLimits.valueBytes }, 'at most 8192'],
      [{ odd: true }, 'value.at is an instance of Date'],
    ]
    for (const [body] of wrong) await postTo(gateway, 'loop', body)
    const problems = (await readNewest(gateway.dir, wrong.length)).map(({ state, problem }) => [state, problem?.frame])
    expect(problems).toEqual(wrong.map(([, why]) => ['parked', expect.stringContaining(why)]))
    expect(await readState(gateway.dir, 'loop.ts')).toHaveLength(stateLimits.keysOfCall)
  })

  test('hookloom test, run, capture and replay write nothing to context.state, test and run begin with an empty one, and a fixture may give values', async () => {
    const buildFixture = (state: object, expected: string) => ({
      request: { path: 'count', payload: { id: 'a' } },
      state,
      expect: { decision: 'accept', actions: [{ message: expected }] },
    })
    const gateway = await startInside({
      config,
      files: {
        ...files,
        'hooks/transforms/count.fixtures/none.json': JSON.stringify(buildFixture({}, 'seen 0')),
        'hooks/transforms/count.fixtures/some.json': JSON.stringify(buildFixture({ 'seen:a': 7 }, 'seen 7')),
      },
    })
    const id = readDeliveryId(await postTo(gateway, 'count', { id: 'a' }))
    const run = async (...args: string[]) => runCommand(args, { dir: gateway.dir })
    expect((await run('test', 'count.ts')).stdout).toMatch(/2 (fixtures )?pass/)
    const dry = await run('run', 'count', join(gateway.dir, 'hooks/transforms/count.fixtures/none.json'))
    expect(dry.stdout).toContain('seen 0 in a replay')
    await run('capture', id)
    await run('replay')
    expect(await readState(gateway.dir, 'count.ts')).toMatchObject([{ key: 'seen:a', value: 1 }])
  })

  test('the examples of the guide count failures, and the reports that they left out', async () => {
    const readExample = (mark: string) => readBlock('transforms/README.md', 'ts', mark)
    const gateway = await startInside({
      config: {
        hooks: {
          mappings: ['failures', 'quiet'].map((name) => ({
            match: { path: name },
            transform: { module: `${name}.ts` },
          })),
        },
      },
      files: {
        'hooks/transforms/failures.ts': readExample('// failures.ts'),
        'hooks/transforms/failures.fixtures/third.json': readBlock(
          'transforms/README.md',
          'json',
          '"failures:billing"',
        ),
        'hooks/transforms/quiet.ts': readExample('// quiet.ts'),
      },
    })
    const build = async (status: string) => (await postTo(gateway, 'failures', { repository: 'a', status })).status
    const statuses: number[] = []
    for (const status of ['failed', 'failed', 'failed', 'failed', 'passed', 'failed'])
      statuses.push(await build(status))
    expect(statuses).toEqual([204, 204, 200, 204, 204, 204])
    expect((await runCommand(['test', 'failures.ts'], { dir: gateway.dir })).code).toBe(0)
    const report = async () => (await postTo(gateway, 'quiet', { issue: { id: '7', title: 'Disk full' } })).status
    expect([await report(), await report(), await report()]).toEqual([200, 204, 204])
    expect(await readState(gateway.dir, 'quiet.ts')).toMatchObject([{ key: '7', value: { more: 2 } }])
  })
})
