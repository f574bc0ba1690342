// Channels in code: what their results and exceptions mean.
import { describe, expect, test } from 'vitest'
import { createOwnChannel } from '../../../../src/plugins/channels/shared/own.ts'
import type { SimpleChannelDefinition, Outgoing } from '../../../../src/model/channel.ts'
import { toProblemRecord, Problem } from '../../../../src/core/model/problem.ts'

const message: Outgoing = {
  to: 'harbour',
  text: 'The tide is out.',
  format: 'markdown',
  nonce: 'n1',
  signal: new AbortController().signal,
  run: { id: 'r', agentId: 'main', name: 'CI', hops: 1 },
}

const host = { fetch: globalThis.fetch, clock: Date.now, write() {} }

function open(definition: Omit<Partial<SimpleChannelDefinition<unknown>>, 'send'> & { send?: unknown }) {
  const toThrown = (thrown: unknown) => (thrown instanceof Error ? `a ${thrown.name} at x.ts:1` : 'something')
  // as: authors may return anything
  const given = { send: () => ({ kind: 'sent', id: '1' }), ...definition } as SimpleChannelDefinition<unknown>
  return createOwnChannel(
    {
      kind: 'sound',
      id: 'own:x',
      label: 'hooks/channels/x',
      definition: given,
      options: { token: 't' },
      hash: 'h',
      describeThrown: toThrown,
    },
    {},
    host,
  )
}

describe('an attempt of a channel in code', () => {
  test.each([
    [
      { kind: 'sent', id: '1' },
      { kind: 'sent', id: '1' },
    ],
    [
      { kind: 'rate-limited', retryAfterMs: 7_000, detail: 'Slow down.' },
      { kind: 'rate-limited', retryAfterMs: 7_000, detail: 'Slow down.' },
    ],
    [
      { kind: 'transient', detail: 'Busy.\nReally.' },
      { kind: 'transient', detail: 'Busy. Really.' },
    ],
    [
      { kind: 'permanent', detail: 'Never.' },
      { kind: 'permanent', detail: 'Never.' },
    ],
    [undefined, { kind: 'ambiguous', detail: expect.stringContaining('hooks/channels/x returned no valid result') }],
    [true, { kind: 'ambiguous' }],
    [{ kind: 'sent' }, { kind: 'ambiguous' }],
  ])('an attempt of a channel in code that returns %j has the documented result', async (given, expected) => {
    expect(await open({ send: async () => given }).send(message)).toMatchObject(expected)
  })

  test('a channel in code gets its options and the message', async () => {
    const seen: unknown[] = []
    const send = (...given: unknown[]) => (seen.push(...given), { kind: 'sent' as const, id: '1' })
    await open({ send }).send(message)
    expect(seen).toEqual([message, { token: 't' }])
  })

  test('an attempt of a channel in code that throws may have posted its message, unless no connection was made', async () => {
    const send = () => {
      throw new TypeError('The tide is out.')
    }
    expect(await open({ send }).send(message)).toEqual({
      kind: 'ambiguous',
      detail: 'The channel hooks/channels/x threw a TypeError at x.ts:1.',
    })
    const refused = await open({ send: () => fetch('http://127.0.0.1:1/') }).send(message)
    expect(refused).toMatchObject({ kind: 'transient', detail: expect.stringContaining('could not connect') })
  })
})

describe('a channel in code', () => {
  test('the pieces of a reply to a channel in code have at most its maxChars, or 4,000 characters', () => {
    const words = 'word '.repeat(2_000)
    expect(
      open({})
        .split(words)
        .map(({ length }) => length > 4_000),
    ).not.toContain(true)
    expect(open({ maxChars: 100 }).split(words).length).toBeGreaterThan(99)
  })

  test('a channel in code refuses a recipient with the reason from its whyNot, and its messages wait if whyNot throws', async () => {
    expect(open({}).whyNot('anybody')).toBeUndefined()
    expect(open({ whyNot: (to) => `no ${to}` }).whyNot('pigeon')).toBe('no pigeon')
    const whyNot = () => {
      throw new Error('no')
    }
    // a refusal would lose the reply
    expect(open({ whyNot }).whyNot('pigeon')).toBeUndefined()
    expect(await open({ whyNot }).send(message)).toEqual({
      kind: 'rate-limited',
      retryAfterMs: 60_000,
      detail: 'The channel hooks/channels/x threw a Error at x.ts:1. The reply waits until it is fixed.',
    })
  })

  test('no detail of a channel in code shows a secret of its options', async () => {
    const send = () => ({ kind: 'permanent' as const, detail: 'The key tk_0123456789 is not valid.' })
    const own = { kind: 'sound' as const, id: 'x', label: 'x.ts', hash: 'h', describeThrown: () => '' }
    const channel = createOwnChannel({ ...own, definition: { send }, options: { token: 'tk_0123456789' } }, {}, host)
    expect(await channel.send(message)).toEqual({ kind: 'permanent', detail: 'The key *** is not valid.' })
  })

  test('an attempt of a plugin ends at the time limit of its section', async () => {
    const send = () => new Promise<never>(() => {})
    const own = { kind: 'sound' as const, id: 'x', label: 'x.ts', hash: 'h', describeThrown: () => '' }
    const channel = createOwnChannel({ ...own, definition: { send }, options: {} }, { timeoutMs: 20 }, host)
    const detail = 'The channel x.ts did not end within 20 ms.'
    expect(await channel.send(message)).toEqual({ kind: 'ambiguous', detail })
  })

  test('a channel whose create returns no send keeps its messages until it is fixed', async () => {
    const own = { kind: 'sound' as const, id: 'x', label: 'x.ts', hash: 'h', describeThrown: () => '' }
    // as: authors may return anything
    const definition = { name: 'x', about: 'x', create: () => ({ whyNot() {}, split: () => ['a'] }) } as never
    const channel = createOwnChannel({ ...own, definition, options: {} }, {}, host)
    expect(await channel.send(message)).toMatchObject({
      kind: 'rate-limited',
      detail: expect.stringContaining('must return send from create'),
    })
  })

  test('a reply to a channel in code that does not load waits until the code is fixed', async () => {
    const problem = toProblemRecord(new Problem('channel-failed', 'hooks/channels/x.ts does not build.'))
    const channel = createOwnChannel(
      { kind: 'broken', id: 'own:x', label: 'hooks/channels/x', problem },
      { to: 'harbour' },
      host,
    )
    expect(channel).toMatchObject({ id: 'own:x', to: 'harbour' })
    expect(await channel.send(message)).toEqual({
      kind: 'rate-limited',
      retryAfterMs: 60_000,
      detail: 'hooks/channels/x.ts does not build. The reply waits until it is fixed.',
    })
  })
})
