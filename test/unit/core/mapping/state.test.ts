import { expect, test } from 'vitest'
import { createDecisionState, type StateReader } from '../../../../src/core/mapping/state.ts'

test('if two concurrent reads of a key get different values, the decision is based on the first one', async () => {
  const answers: ((read: Awaited<ReturnType<StateReader>>) => void)[] = []
  const state = createDecisionState('x.ts', () => new Promise((answer) => answers.push(answer)))
  const readState = state.readState()
  const reads = [readState?.('count'), readState?.('count')]
  answers[0]?.({ stored: 'old', json: '1' })
  answers[1]?.({ stored: 'new', json: '2' })
  expect(await Promise.all(reads)).toEqual(['1', '2'])
  state.add([['count', '3', 60_000]])
  expect(state.changes()).toMatchObject([{ key: 'count', json: '3', read: { stored: 'old' } }])
})
