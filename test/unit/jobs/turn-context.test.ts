// The history and events of a turn: all of them, or smaller and smaller parts for a model with a small context.
import { describe, expect, test } from 'vitest'
import { listTurnContexts } from '../../../src/jobs/prompt.ts'
import type { Message } from '../../../src/model/job.ts'

function buildMessages(count: number, chars: number): Message[] {
  return Array.from({ length: count }, (_, at) => ({
    role: at % 2 === 0 ? 'user' : 'assistant',
    text: 'w'.repeat(chars),
    runId: 'r',
    at,
  }))
}

function buildWaiting(count: number, chars: number) {
  const event = { text: 'w'.repeat(chars), source: 'ring', trusted: false }
  return { events: Array.from({ length: Math.min(50, count) }, () => event), count }
}

const nothing = { events: [], count: 0 }
const toShape = ({ history, waiting: { events, count, maxChars } }: ReturnType<typeof listTurnContexts>[number]) => ({
  history: history.length,
  events: events.length,
  count,
  maxChars,
})

describe('the contexts of a turn', () => {
  test('the first context of a turn has all history and as many events as a prompt may show', () => {
    const [whole] = listTurnContexts({ history: buildMessages(200, 500), waiting: buildWaiting(63, 10_000) })
    expect(toShape(whole)).toEqual({ history: 200, events: 50, count: 63, maxChars: 2_000 })
  })

  test('the last context of a turn is only the beginning of the oldest event', () => {
    const last = listTurnContexts({ history: buildMessages(200, 500), waiting: buildWaiting(63, 10_000) }).at(-1)
    expect(last && toShape(last)).toEqual({ history: 0, events: 1, count: 63, maxChars: 2_000 })
  })

  test('each context of a turn is smaller than the one before', () => {
    const contexts = listTurnContexts({ history: buildMessages(9, 3_000), waiting: buildWaiting(4, 100) })
    expect(contexts.map(toShape).map(({ history }) => history)).toEqual([9, 7, 3, 1, 0])
  })

  test('a turn has one context if there is nothing to omit', () => {
    expect(listTurnContexts({ history: [], waiting: nothing })).toHaveLength(1)
    expect(listTurnContexts({ history: [], waiting: buildWaiting(1, 100) })).toHaveLength(1)
  })

  test('no context of a turn begins with a reply whose question was omitted', () => {
    const contexts = listTurnContexts({ history: buildMessages(150, 2_000), waiting: nothing })
    expect(new Set(contexts.map(({ history: [first] }) => first?.role))).toEqual(new Set(['user', undefined]))
  })
})
