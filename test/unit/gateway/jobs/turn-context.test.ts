// The history and events of a turn: as many as the limits allow, or smaller and smaller parts for a model with a small context.
import { describe, expect, test } from 'vitest'
import { listTurnContexts } from '../../../../src/gateway/jobs/context.ts'
import type { Message } from '../../../../src/model/job.ts'

function buildMessages(count: number, text: string): Message[] {
  return Array.from({ length: count }, (_, at) => ({
    role: at % 2 === 0 ? 'user' : 'assistant',
    text,
    runId: 'r',
    at,
  }))
}

function buildWaiting(count: number, chars: number) {
  const event = { text: 'w'.repeat(chars), source: 'ring', trusted: false }
  return { events: Array.from({ length: Math.min(50, count) }, () => event), count }
}

const nothing = { events: [], count: 0 }
const limits = { messages: 200, bytes: 200_000 }
const toShape = ({ history, waiting: { events, count, maxChars } }: ReturnType<typeof listTurnContexts>[number]) => ({
  history: history.length,
  events: events.length,
  count,
  maxChars,
})

describe('the history of a turn', () => {
  const listFirst = (messages: readonly Message[], allowed: { messages: number; bytes: number }) =>
    listTurnContexts({ history: messages, limits: allowed, waiting: nothing })[0]

  test('the history of a turn is the newest exchanges within the number of messages, and the turn knows that others are left out', () => {
    expect(listFirst(buildMessages(10, 'w'), { messages: 4, bytes: 100 })).toMatchObject({
      history: [{ at: 6 }, { at: 7 }, { at: 8 }, { at: 9 }],
      leavesOut: true,
    })
    expect(listFirst(buildMessages(4, 'w'), { messages: 4, bytes: 100 })).toMatchObject({ leavesOut: false })
  })

  test('the history of a turn never has half an exchange', () => {
    expect(listFirst(buildMessages(10, 'w'), { messages: 5, bytes: 100 }).history).toHaveLength(4)
    expect(listFirst(buildMessages(10, 'w'), { messages: 10, bytes: 7 }).history).toHaveLength(6)
    expect(listFirst(buildMessages(10, 'w'), { messages: 1, bytes: 100 }).history).toHaveLength(0)
  })

  test('the limit of the history is one of bytes, not of characters', () => {
    expect(listFirst(buildMessages(10, '字'), { messages: 10, bytes: 12 }).history).toHaveLength(4)
  })

  test('an exchange that is longer than the limit ends the history, and no older one takes its place', () => {
    const messages = [...buildMessages(2, 'w'), ...buildMessages(2, 'w'.repeat(60)), ...buildMessages(2, 'w')]
    expect(listFirst(messages, { messages: 10, bytes: 100 }).history).toHaveLength(2)
  })
})

describe('the events of a turn', () => {
  test('a turn has as many of the oldest events as fit into 6,000 bytes with their markers, at least one', () => {
    const listFirst = (chars: number) => listTurnContexts({ history: [], limits, waiting: buildWaiting(63, chars) })[0]
    expect(toShape(listFirst(840))).toMatchObject({ events: 6, count: 63 })
    expect(toShape(listFirst(841))).toMatchObject({ events: 5, count: 63 })
    expect(toShape(listFirst(1_000_000))).toMatchObject({ events: 1, count: 63, maxChars: 32_000 })
  })
})

describe('the contexts of a turn', () => {
  test('the last context of a turn is only the beginning of the oldest event', () => {
    const history = buildMessages(200, 'w'.repeat(500))
    const last = listTurnContexts({ history, limits, waiting: buildWaiting(63, 10_000) }).at(-1)
    expect(last && toShape(last)).toEqual({ history: 0, events: 1, count: 63, maxChars: 2_000 })
  })

  test('each context of a turn is smaller than the one before', () => {
    const history = buildMessages(9, 'w'.repeat(3_000))
    const contexts = listTurnContexts({ history, limits: { messages: 200, bytes: 27_000 }, waiting: nothing })
    expect(contexts.map(toShape).map(({ history: kept }) => kept)).toEqual([9, 3, 1, 0])
  })

  test('a turn has one context if there is nothing to omit', () => {
    expect(listTurnContexts({ history: [], limits, waiting: nothing })).toHaveLength(1)
    expect(listTurnContexts({ history: [], limits, waiting: buildWaiting(1, 100) })).toHaveLength(1)
  })

  test('no context of a turn begins with a reply whose question was omitted', () => {
    const contexts = listTurnContexts({ history: buildMessages(150, 'w'.repeat(2_000)), limits, waiting: nothing })
    expect(new Set(contexts.map(({ history: [first] }) => first?.role))).toEqual(new Set(['user', undefined]))
  })
})
