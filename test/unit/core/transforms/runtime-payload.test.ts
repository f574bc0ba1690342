import { describe, expect, test } from 'vitest'
import { createStage, run, requireLoaded } from './runtime-stage.ts'
import { toCall } from './stage.ts'

const checked = `import { defineTransform } from 'hookloom'
import { z } from 'zod'

export default defineTransform({
  payload: z.object({ user: z.object({ name: z.string(), age: z.number().min(18).default(20) }) }),
  run: ({ payload, headers }) => ({ message: payload.user.name.toUpperCase() + payload.user.age, name: headers['content-type'] }),
})`

describe('a transform with a payload schema', () => {
  test('a transform with a payload schema gets the parsed payload, and everything else unchanged', async () => {
    const { write, load } = await createStage()
    await write({ 'x.ts': checked })
    expect(await run((await load('x.ts'))['x.ts'], { user: { name: 'ann', secret: 1 } })).toMatchObject({
      kind: 'returned',
      value: { message: 'ANN20', name: 'application/json' },
    })
  })

  test.each([
    [{ user: { name: 5 } }, 'The payload does not fit: user.name: expected a string, found a number.'],
    [
      { user: { name: 'SECRET', age: 3 } },
      'The payload does not fit: user.age: expected a number of at least 18, found a number.',
    ],
    [{ other: 'SECRET' }, 'The payload does not fit: user: expected an object, found nothing.'],
    [['SECRET'], 'The payload does not fit: expected an object, found an array.'],
  ])('the payload %j is refused with the path and the expectation, without the value', async (payload, detail) => {
    const { write, load } = await createStage({ workers: 1 })
    await write({ 'x.ts': checked })
    const outcome = await run((await load('x.ts'))['x.ts'], payload)
    expect(outcome).toEqual({ kind: 'refused', problem: { code: 'payload-invalid', detail }, log: [] })
  })

  test('a number that a double does not hold is a text of its digits, and a schema that wants a number says what to do', async () => {
    const { write, load } = await createStage({ workers: 1 })
    await write({ 'x.ts': checked, 'y.ts': 'export default ({ payload }) => ({ seen: payload.list })' })
    const loaded = await load('x.ts', 'y.ts')
    const text = '{"list":[653247040368672769,1.50,10.0,1e400],"user":{"name":"ann","age":653247040368672769}}'
    expect(await requireLoaded(loaded['y.ts']).run({ ...toCall({}), body: Buffer.from(text) })).toMatchObject({
      value: { seen: ['653247040368672769', 1.5, 10, '1e400'] },
    })
    const detail =
      'The payload does not fit: user.age: expected a number, found a string. A number that a double does not hold is a string of its digits: use z.union([z.number(), z.string()]).'
    expect(await requireLoaded(loaded['x.ts']).run({ ...toCall({}), body: Buffer.from(text) })).toMatchObject({
      kind: 'refused',
      problem: { detail },
    })
  })

  test('the fields of a payload schema are known without a call, separately for each export', async () => {
    const { write, load, runtime, root, settings } = await createStage({ workers: 1 })
    await write({ 'x.ts': `${checked}\nexport const plain = () => null`, 'y.ts': 'export default () => null' })
    const loaded = await load('x.ts', 'y.ts')
    expect(loaded['x.ts']?.reads).toEqual([['user', 'name']])
    expect(loaded['y.ts']?.reads).toEqual([])
    const named = await runtime.load({
      root,
      refs: [{ module: 'x.ts', export: 'plain' }, { module: 'x.ts' }],
      settings,
    })
    expect([...named.values()].map(({ reads }) => reads)).toEqual([[], [['user', 'name']]])
  })

  test('any payload schema with a safeParse method works, whatever its errors look like', async () => {
    const { write, load } = await createStage({ workers: 1 })
    await write({
      'x.ts': `import { defineTransform } from 'hookloom'
        const payload = { safeParse: (value: { n?: number }) => value.n === 1 ? { success: true as const, data: value } : { success: false as const, error: 'SECRET' } }
        export default defineTransform({ payload, run: ({ payload }) => ({ n: payload.n }) })`,
    })
    const transform = requireLoaded((await load('x.ts'))['x.ts'])
    expect(await run(transform, { n: 1 })).toMatchObject({ kind: 'returned', value: { n: 1 } })
    expect(await run(transform, { n: 2 })).toMatchObject({
      kind: 'refused',
      problem: {
        code: 'payload-invalid',
        detail: 'The payload does not fit: it does not have the form that this hook expects.',
      },
    })
  })

  test('an exception in the code of a schema is a failure, not a refusal', async () => {
    const { write, load } = await createStage({ workers: 1 })
    await write({ 'x.ts': checked.replace('payload.user.name.toUpperCase()', `(() => { throw new Error('no') })()`) })
    expect(await run((await load('x.ts'))['x.ts'], { user: { name: 'ann' } })).toMatchObject({ kind: 'failed' })
  })
})
