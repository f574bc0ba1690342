import { expect, test } from 'vitest'
import type { TransformResult } from '../../../src/core/model/transform.ts'

test('a result with a field of another type is no valid result of another kind', () => {
  const dedupe = { key: 'k', for: '1h' }
  // @ts-expect-error: a message is a text
  const wrong: TransformResult = { message: 5, dedupe }
  // @ts-expect-error: an event has no session key
  const mixed: TransformResult = { text: 'x', sessionKey: 'hook:x' }
  const right: TransformResult[] = [
    { message: 'x', dedupe },
    { text: 'x', mode: 'now' },
    { kind: 'deliver', to: '1' },
    {},
    null,
  ]
  expect([wrong, mixed, ...right]).toHaveLength(7)
})
