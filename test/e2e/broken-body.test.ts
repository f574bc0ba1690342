// A broken body is answered with 400 on every hook, even if no template or condition reads the payload.
import { beforeAll, describe, expect, test } from 'vitest'
import { readVerdict } from './answers.ts'
import { type Inside, readStore, startInside } from './inside.ts'
import { bearer, type Headers, post, send } from './wire.ts'

let gateway: Inside

const toMapping = (id: string, fields: object) => ({ id, match: { path: id }, deliver: false, ...fields })

beforeAll(async () => {
  gateway = await startInside({
    config: {
      hooks: {
        answerWithinMs: 50,
        mappings: [
          toMapping('fixed', { messageTemplate: 'It came.' }),
          toMapping('missing', { transform: { module: 'missing.ts' } }),
          toMapping('slow', { transform: { module: 'slow.ts' } }),
          toMapping('fast', { transform: { module: 'fast.ts' } }),
          toMapping('sourced', { match: { path: 'sourced', source: 'alert' }, transform: { module: 'fast.ts' } }),
        ],
      },
    },
    files: {
      'hooks/transforms/slow.ts': 'export default () => new Promise(() => {})',
      'hooks/transforms/fast.ts': "export default ({ source }) => ({ message: `from ${source ?? 'nobody'}` })",
    },
  })
})

const broken: [string, Buffer][] = [
  ['not JSON', Buffer.from('{"a":')],
  ['not UTF-8', Buffer.from([0x22, 0xff, 0x22])],
  ['nested too deeply', Buffer.from('['.repeat(65) + ']'.repeat(65))],
  ['empty', Buffer.alloc(0)],
]

describe.each(['fixed', 'missing', 'slow', 'fast'])('invalid bodies at the hook "%s"', (hook) => {
  test.each(broken)('a body that is %s is answered 400 and is not stored', async (_, body) => {
    expect(readVerdict(await post(gateway.port, `/hooks/${hook}`, body))).toBe('body-invalid')
    const stored = await readStore(gateway.dir, (store) => store.deliveries({ limit: 1000 }))
    expect(stored.filter((delivery) => delivery.hook === hook)).toEqual([])
  })

  test('an invalid body gets the same answer each time under one Idempotency-Key', async () => {
    const headers: Headers = [['idempotency-key', `broken-${hook}`]]
    for (let i = 0; i < 3; i += 1) {
      expect(readVerdict(await post(gateway.port, `/hooks/${hook}`, '{"a":', headers))).toBe('body-invalid')
    }
  })

  test('an unsupported media type is answered 415', async () => {
    const headers: Headers = [...bearer, ['content-type', 'image/png']]
    const reply = await send(gateway.port, { target: `/hooks/${hook}`, headers, body: '{}' })
    expect(readVerdict(reply)).toBe('media-type-unsupported')
  })
})

describe('field `source` of a payload', () => {
  test.each(['{"source":"alert"}', String.raw`{"sourc\u0065":"alert"}`, String.raw`{"\u0073\u006furce":"alert"}`])(
    'the source is read from %s, even if only a transform reads the payload',
    async (body) => {
      expect(readVerdict(await post(gateway.port, '/hooks/sourced', body))).toBe('accepted')
      expect(readVerdict(await post(gateway.port, '/hooks/fast', body))).toBe('accepted')
      const [last] = (await readStore(gateway.dir, (store) => store.deliveries({ limit: 1 }))).slice(-1)
      expect([last?.hook, last?.source]).toEqual(['fast', 'alert'])
    },
  )

  test('only the key "source" names the source', async () => {
    expect(readVerdict(await post(gateway.port, '/hooks/sourced', String.raw`{"sourc\u0066":"alert"}`))).toBe('skipped')
  })
})
