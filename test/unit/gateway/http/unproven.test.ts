import { describe, expect, test } from 'vitest'
import { Problem } from '../../../../src/core/model/problem.ts'
import { createUnprovenBodies } from '../../../../src/gateway/http/unproven.ts'

const perClient = 8 * 1024 * 1024
const clients = 8
const small = 1_000

function catchCode(run: () => unknown): string | undefined {
  try {
    run()
  } catch (error) {
    return error instanceof Problem ? `${error.code} ${error.retryAfterSeconds}` : String(error)
  }
  return undefined
}

describe('memory for the bodies of unproven requests', () => {
  test('each client has its own share, which is free again when its requests end', () => {
    const bodies = createUnprovenBodies()
    const [first, second, other] = [bodies.open(), bodies.open(), bodies.open()]
    first.take('a', perClient - 1, small)
    expect(catchCode(() => second.take('a', 2, small))).toBe('overloaded 5')
    expect(catchCode(() => second.take('a', 1, small))).toBeUndefined()
    expect(catchCode(() => other.take('b', perClient, small))).toBeUndefined()
    first.release()
    expect(catchCode(() => bodies.open().take('a', perClient - 1, small))).toBeUndefined()
  })

  test('the memory of all clients together is limited', () => {
    const bodies = createUnprovenBodies()
    const holds = Array.from({ length: clients }, (_, index) => {
      const hold = bodies.open()
      hold.take(`client ${index}`, perClient, small)
      return hold
    })
    expect(catchCode(() => bodies.open().take('one more', 1, small))).toBe('overloaded 5')
    holds[0]?.release()
    expect(catchCode(() => bodies.open().take('one more', 1, small))).toBeUndefined()
  })

  test('a share has room for one body of the maximum size, both compressed and inflated', () => {
    const large = 100 * 1024 * 1024
    const hold = createUnprovenBodies().open()
    hold.take('a', large, large)
    expect(catchCode(() => hold.take('a', large, large))).toBeUndefined()
    expect(catchCode(() => hold.take('a', 1, large))).toBe('overloaded 5')
  })

  test('unused memory is given back, and a second release changes nothing', () => {
    const bodies = createUnprovenBodies()
    const hold = bodies.open()
    hold.take('a', perClient, small)
    hold.take('a', -perClient / 2, small)
    expect(catchCode(() => bodies.open().take('a', perClient / 2, small))).toBeUndefined()
    hold.release()
    hold.release()
    expect(catchCode(() => bodies.open().take('a', perClient / 2 + 1, small))).toBe('overloaded 5')
  })

  test('a client without reserved memory is not remembered', () => {
    const bodies = createUnprovenBodies()
    for (let count = 0; count < 100; count++) {
      const hold = bodies.open()
      hold.take(`client ${count}`, 10, small)
      hold.release()
    }
    expect(bodies.size).toBe(0)
  })
})
