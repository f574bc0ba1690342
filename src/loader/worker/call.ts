// One call of a transform: whatever it does short of not giving the thread back, the outcome is a value.
import { isProxy } from 'node:util/types'
import type { JsonValue } from '../../base/json.ts'
import { parseBody } from '../../model/parse-body.ts'
import { Problem, toProblem, toProblemRecord } from '../../model/problem.ts'
import type { TransformCall, TransformOutcome } from '../../model/transform.ts'
import type { UncheckedFunction } from '../modules/evaluate.ts'
import { addLine } from './guard.ts'
import type { Locate } from '../modules/locate.ts'
import { NotPlain, toPlainJson } from './plain.ts'
import { readRefusal, toThrownReport } from '../modules/thrown.ts'

/** As the main thread knows it, but for a result that is JSON still. */
export type CallOutcome =
  | { readonly kind: 'returned'; readonly json: string; readonly log: readonly string[] }
  | Exclude<TransformOutcome, { kind: 'returned' }>

export type Callable = {
  readonly label: string
  readonly call: UncheckedFunction
  readonly locate: Locate
}

export function toLateProblem(label: string, timeoutMs: number): Problem {
  return new Problem('transform-timeout', `${label} did not end within ${timeoutMs} ms.`)
}

export function toClosedProblem(): Problem {
  return new Problem('transform-failed', 'The gateway is shutting down.')
}

export function toMemoryProblem(label: string, memoryMb: number): Problem {
  return new Problem('transform-failed', `${label} used more than ${memoryMb} MB.`)
}

export function toExitProblem(label: string, how: string): Problem {
  return new Problem('transform-failed', `${label} ended its worker (${how}).`)
}

export function toGoneProblem(label: string, cause: unknown, memoryMb: number): Problem {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'it crashed'
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') return toMemoryProblem(label, memoryMb)
  return new Problem('transform-failed', `${label} ended its worker (${code}).`, { cause })
}

export function toStartProblem(cause: unknown): Problem {
  const why = cause instanceof Error ? cause.message.slice(0, 200) : 'no reason given'
  return new Problem('transform-failed', 'The transform worker does not start.', { frame: why, cause })
}

export function toFailed(problem: Problem, log: readonly string[] = []): Exclude<CallOutcome, { kind: 'returned' }> {
  return { kind: 'failed', problem: toProblemRecord(problem), log }
}

/**
 * Parses the body and calls the function. The outcome comes at once where the function is not asynchronous: a promise costs
 * more than a small transform. Never throws, never rejects. `head` becomes the function's own.
 * @param call a body of ASCII may be a text already
 */
export function startCall(
  callable: Callable,
  { head, body, syntax }: Pick<TransformCall, 'head' | 'syntax'> & { readonly body: Uint8Array | string },
  log: string[],
): CallOutcome | Promise<CallOutcome> {
  let payload: JsonValue
  try {
    payload = parseBody(body, syntax)
  } catch (error) {
    return { kind: 'refused', problem: toProblemRecord(toProblem(error)), log: [] }
  }
  try {
    // each is there, also when it is undefined, which JSON leaves out; to spread them costs 5 µs
    const { headers, query, url, path, method, source, event, receivedAt, deliveryId } = head
    const input = { payload, headers, query, url, path, method, source, event, receivedAt, deliveryId }
    const value = callable.call(input, { log: (message: unknown) => addLine(log, message) })
    return isSynchronous(value) ? toReturned(callable, value, log) : awaitResult(callable, value, log)
  } catch (thrown) {
    return toThrown(callable, thrown, log)
  }
}

/** True for what `await` would give back as it is. What may be a promise is asked by `await` alone: `then` may be a trap. */
function isSynchronous(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return typeof value !== 'function'
  if (isProxy(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  const isPlain = prototype === Object.prototype || prototype === Array.prototype || prototype === null
  return isPlain && !Object.hasOwn(value, 'then')
}

async function awaitResult(callable: Callable, pending: unknown, log: readonly string[]): Promise<CallOutcome> {
  try {
    return toReturned(callable, await pending, log)
  } catch (thrown) {
    return toThrown(callable, thrown, log)
  }
}

function toThrown({ label, locate }: Callable, thrown: unknown, log: readonly string[]): CallOutcome {
  const refusal = readRefusal(thrown)
  if (refusal !== undefined) {
    return { kind: 'refused', problem: toProblemRecord(new Problem('payload-invalid', refusal)), log: [...log] }
  }
  const { what, at, frame } = toThrownReport(thrown, locate)
  return toFailed(new Problem('transform-failed', `${label} threw ${what}${at}.`, { frame }), [...log])
}

/** Plain data as JSON, or why it is none. */
function toReturned({ label }: Callable, value: unknown, log: readonly string[]): CallOutcome {
  try {
    if (value === undefined) {
      const advice = "return {} to keep the mapping's action, null to skip"
      throw new Problem('transform-result-invalid', `${label} returned nothing: ${advice}.`)
    }
    return { kind: 'returned', json: toPlainJson(value), log: [...log] }
  } catch (error) {
    if (!(error instanceof NotPlain)) return toFailed(toProblem(error), [...log])
    const detail = `${label} must return plain JSON data: ${error.message}.`
    return toFailed(new Problem('transform-result-invalid', detail), [...log])
  }
}
