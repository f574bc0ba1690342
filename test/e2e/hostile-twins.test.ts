// A repeated delivery has one effect, and its answer says so.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { readDeliveryId, readVerdict } from './answers.ts'
import { type Inside, readStore, startInside } from './inside.ts'
import { type Headers, post, type Reply } from './wire.ts'

let gateway: Inside

beforeAll(async () => {
  gateway = await startInside({
    config: {
      hooks: {
        mappings: [
          { id: 'any', match: { path: 'any' }, deliver: false },
          { id: 'other', match: { path: 'other' }, deliver: false },
          { id: 'only', match: { path: 'only', payload: { go: true } }, deliver: false },
          { id: 'broken', match: { path: 'broken' }, transform: { module: 'missing.ts' } },
        ],
      },
    },
  })
})

const toKey = (key: string): Headers => [['idempotency-key', key]]
const isReplay = ({ headers }: Reply) => headers['idempotent-replay'] === 'true'
const readRecord = (id: string) => readStore(gateway.dir, (reader) => reader.delivery(id))

describe('repetitions with an Idempotency-Key', () => {
  test.each([
    ['wake', { text: 'x' }],
    ['agent', { message: 'x', deliver: false }],
    ['any', { a: 1 }],
  ])(
    'a repetition of a request to %s gets the first answer again, byte for byte, with a header that says so',
    async (name, body) => {
      const first = await post(gateway.port, `/hooks/${name}`, body, toKey('same'))
      const second = await post(gateway.port, `/hooks/${name}`, body, toKey('same'))
      expect(readVerdict(first)).toBe('accepted')
      expect([second.status, second.body]).toEqual([first.status, first.body])
      expect([isReplay(first), isReplay(second)]).toEqual([false, true])
      expect(second.headers['x-request-id']).not.toBe(first.headers['x-request-id'])
    },
  )

  test('the same body without a key or with another key makes another delivery', async () => {
    const body = { text: 'the same' }
    const replies = [
      await post(gateway.port, '/hooks/wake', body),
      await post(gateway.port, '/hooks/wake', body),
      await post(gateway.port, '/hooks/wake', body, toKey('one')),
      await post(gateway.port, '/hooks/wake', body, toKey('another')),
      await post(gateway.port, '/hooks/wake', body, toKey('ONE')),
    ]
    expect(new Set(replies.map(readDeliveryId)).size).toBe(5)
  })

  test('the same key on another path makes another delivery', async () => {
    const ids = await Promise.all(
      ['any', 'other'].map(async (name) =>
        readDeliveryId(await post(gateway.port, `/hooks/${name}`, {}, toKey('scoped'))),
      ),
    )
    expect(new Set(ids).size).toBe(2)
  })

  test('fifty concurrent requests with one key make one delivery and one effect', async () => {
    const body = { text: 'fifty at once' }
    const twins = Array.from({ length: 50 }, () => post(gateway.port, '/hooks/wake', body, toKey('fifty')))
    const replies = await Promise.all(twins)
    expect(new Set(replies.map(readDeliveryId)).size).toBe(1)
    expect(replies.filter((reply) => !isReplay(reply))).toHaveLength(1)
    const events = await readStore(gateway.dir, (reader) => reader.events({ limit: 10_000 }))
    expect(events.filter(({ text }) => text === body.text)).toHaveLength(1)
  })

  test('a repetition with another body belongs to the same delivery, and its record shows this', async () => {
    const first = readDeliveryId(await post(gateway.port, '/hooks/wake', { text: 'first' }, toKey('differs')))
    expect((await readRecord(first))?.bodyDiffered).toBe(false)
    const second = await post(gateway.port, '/hooks/wake', { text: 'second' }, toKey('differs'))
    expect([readDeliveryId(second), isReplay(second)]).toEqual([first, true])
    await expect.poll(async () => (await readRecord(first))?.bodyDiffered).toBe(true)
  })

  test('a key of 256 characters is accepted, and a longer or blank one is refused', async () => {
    expect(readVerdict(await post(gateway.port, '/hooks/wake', { text: 'x' }, toKey('k'.repeat(256))))).toBe('accepted')
    for (const key of ['k'.repeat(257), 'k'.repeat(5_000), '', '  ']) {
      expect(readVerdict(await post(gateway.port, '/hooks/wake', { text: 'x' }, toKey(key)))).toBe(
        'idempotency-key-invalid',
      )
    }
  })

  test('the key of a refused request is not remembered', async () => {
    expect(readVerdict(await post(gateway.port, '/hooks/wake', { text: '' }, toKey('mended')))).toBe('payload-invalid')
    expect(isReplay(await post(gateway.port, '/hooks/wake', { text: 'x' }, toKey('mended')))).toBe(false)
  })

  test('a repetition gets the first answer again, even if a new request would be refused or skipped', async () => {
    for (const [name, taken, other] of [
      ['wake', { text: 'x' }, { text: '' }],
      ['wake', { text: 'y' }, ['no object']],
      ['only', { go: true }, { go: false }],
    ] as const) {
      const headers = toKey(`${name} ${JSON.stringify(other)}`)
      const first = await post(gateway.port, `/hooks/${name}`, taken, headers)
      const second = await post(gateway.port, `/hooks/${name}`, other, headers)
      expect([second.status, second.body, isReplay(second)]).toEqual([200, first.body, true])
    }
  })

  test('the key of a skipped request is not remembered', async () => {
    const skipped = await post(gateway.port, '/hooks/only', { go: false }, toKey('skipped'))
    expect(readVerdict(skipped)).toBe('skipped')
    const again = await post(gateway.port, '/hooks/only', { go: true }, toKey('skipped'))
    expect(readVerdict(again)).toBe('accepted')
    expect(isReplay(again)).toBe(false)
  })

  test('an Idempotency-Key is remembered across a restart', async () => {
    const first = await startInside()
    const reply = await post(first.port, '/hooks/wake', { text: 'x' }, toKey('restart'))
    await first.stop()
    const second = await startInside({ dir: first.dir })
    const again = await post(second.port, '/hooks/wake', { text: 'x' }, toKey('restart'))
    expect([again.status, again.body, isReplay(again)]).toEqual([200, reply.body, true])
  })
})

describe('repetitions with the delivery id of a sender', () => {
  const signGitHub = (delivery: string): Headers => [
    ['x-github-event', 'ping'],
    ['x-github-delivery', delivery],
    ['user-agent', 'GitHub-Hookshot/044aadd'],
  ]

  test('a redelivery with the same id is a duplicate, and one with another id is a new delivery', async () => {
    const body = { zen: 'Keep it logically awesome.', hook_id: 1 }
    const first = await post(gateway.port, '/hooks/any', body, signGitHub('72d3162e-cc78-11e3-81ab-4c9367dc0958'))
    const second = await post(gateway.port, '/hooks/any', body, signGitHub('72d3162e-cc78-11e3-81ab-4c9367dc0958'))
    const third = await post(gateway.port, '/hooks/any', body, signGitHub('72d3162e-cc78-11e3-81ab-4c9367dc0959'))
    expect([second.body, isReplay(second)]).toEqual([first.body, true])
    expect(readDeliveryId(third)).not.toBe(readDeliveryId(first))
    expect(await readRecord(readDeliveryId(first))).toMatchObject({
      source: 'github',
      event: 'ping',
      bodyDiffered: false,
    })
  })

  test('an Idempotency-Key takes precedence over the id of the sender', async () => {
    const id = 'a0d3162e-cc78-11e3-81ab-4c9367dc0958'
    const one = await post(gateway.port, '/hooks/any', {}, [...signGitHub(id), ...toKey('yields-1')])
    const two = await post(gateway.port, '/hooks/any', {}, [...signGitHub(id), ...toKey('yields-2')])
    expect(readDeliveryId(two)).not.toBe(readDeliveryId(one))
  })

  test('a redelivery of a parked delivery runs it again under its old id', async () => {
    const headers = signGitHub('b0d3162e-cc78-11e3-81ab-4c9367dc0958')
    const first = await post(gateway.port, '/hooks/broken', {}, headers)
    const second = await post(gateway.port, '/hooks/broken', {}, headers)
    expect(readDeliveryId(second)).toBe(readDeliveryId(first))
    expect(JSON.parse(second.body)).toMatchObject({ status: 'parked' })
    const parked = await readStore(gateway.dir, (reader) => reader.deliveries({ limit: 100, state: 'parked' }))
    expect(parked.map(({ deliveryId }) => deliveryId)).toEqual([readDeliveryId(first)])
  })
})

test('the bundled database is a SQLite file in WAL mode', () => {
  // the header of a SQLite file: bytes 18 and 19 are 2 in WAL mode (sqlite.org/fileformat.html)
  const header = readFileSync(join(gateway.dir, 'state/hookloom.db')).subarray(0, 20)
  expect([header.toString('latin1', 0, 15), header[18], header[19]]).toEqual(['SQLite format 3', 2, 2])
})
