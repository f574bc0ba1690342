// What a turn is given besides what it is about: all of it, and ever less where a model takes no more.
import { describe, expect, test } from 'vitest'
import { listTurnContexts } from '../../../src/jobs/prompt.ts'
import type { Message } from '../../../src/model/job.ts'

function said(count: number, chars: number): Message[] {
  return Array.from({ length: count }, (_, at) => ({
    role: at % 2 === 0 ? 'user' : 'assistant',
    text: 'w'.repeat(chars),
    runId: 'r',
    at,
  }))
}

function waits(count: number, chars: number) {
  const event = { text: 'w'.repeat(chars), source: 'ring', trusted: false }
  return { events: Array.from({ length: Math.min(50, count) }, () => event), count }
}

const nothing = { events: [], count: 0 }
const shape = ({ history, waiting: { events, count, maxChars } }: ReturnType<typeof listTurnContexts>[number]) => ({
  history: history.length,
  events: events.length,
  count,
  maxChars,
})

describe('the contexts of a turn', () => {
  test('begin with all that a large model takes', () => {
    const [whole] = listTurnContexts({ history: said(200, 500), waiting: waits(63, 10_000) })
    expect(shape(whole)).toEqual({ history: 200, events: 50, count: 63, maxChars: 2_000 })
  })

  test('end with the oldest event alone, by its beginning', () => {
    const last = listTurnContexts({ history: said(200, 500), waiting: waits(63, 10_000) }).at(-1)
    expect(last && shape(last)).toEqual({ history: 0, events: 1, count: 63, maxChars: 2_000 })
  })

  test('are each less than the one before', () => {
    const contexts = listTurnContexts({ history: said(9, 3_000), waiting: waits(4, 100) })
    expect(contexts.map(shape).map(({ history }) => history)).toEqual([9, 7, 3, 1, 0])
  })

  test('are one where there is nothing to leave out', () => {
    expect(listTurnContexts({ history: [], waiting: nothing })).toHaveLength(1)
    expect(listTurnContexts({ history: [], waiting: waits(1, 100) })).toHaveLength(1)
  })

  test('never begin with a reply whose question was left out', () => {
    const contexts = listTurnContexts({ history: said(150, 2_000), waiting: nothing })
    expect(new Set(contexts.map(({ history: [first] }) => first?.role))).toEqual(new Set(['user', undefined]))
  })
})
