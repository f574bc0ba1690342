// Runs one call of a transform. An exception of its code is an outcome too.
import { takeStart } from '../../../base/text.ts'
import { isProxy } from 'node:util/types'
import type { JsonValue } from '../../../base/json.ts'
import { parseBodyForCode } from '../../model/body.ts'
import { Problem, toProblem, toProblemRecord } from '../../model/problem.ts'
import type { TransformCall, TransformOutcome } from '../../model/transform.ts'
import type { StateWrite, TransformState } from '../../model/transform-state.ts'
import type { UncheckedFunction } from '../modules/evaluate.ts'
import { type CallState, createCallState } from './call-state.ts'
import { addLine } from './guard.ts'
import type { Locate } from '../modules/locate.ts'
import { NotPlainError, toPlainJson } from './plain.ts'
import { readRefusal, buildThrownReport } from '../modules/thrown.ts'

/** The outcome for the main thread. The result is JSON text. */
export type CallOutcome =
  | {
      readonly kind: 'returned'
      readonly json: string
      readonly log: readonly string[]
      readonly state: readonly StateWrite[]
    }
  | Exclude<TransformOutcome, { kind: 'returned' }>

export type Callable = {
  readonly label: string
  readonly call: UncheckedFunction
  readonly locate: Locate
}

export function buildTimeoutProblem(label: string, timeoutMs: number): Problem {
  return new Problem('transform-timeout', `${label} did not end within ${timeoutMs} ms.`)
}

export function buildLoadTimeoutProblem(label: string, timeoutMs: number): Problem {
  return new Problem('transform-load-failed', `${label} was not loaded within ${timeoutMs} ms.`)
}

export function buildShutdownProblem(): Problem {
  return new Problem('transform-failed', 'The gateway is shutting down.')
}

export function buildMemoryProblem(label: string, memoryMb: number): Problem {
  return new Problem('transform-failed', `${label} used more than ${memoryMb} MB.`)
}

export function buildExitProblem(label: string, how: string): Problem {
  return new Problem('transform-failed', `${label} ended its worker (${how}).`)
}

export function buildLostThreadProblem(label: string, cause: unknown, memoryMb: number): Problem {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'it crashed'
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') return buildMemoryProblem(label, memoryMb)
  return new Problem('transform-failed', `${label} ended its worker (${code}).`, { cause })
}

export function buildStartProblem(cause: unknown): Problem {
  const why = cause instanceof Error ? takeStart(cause.message, 200) : 'no reason given'
  return new Problem('transform-failed', 'The transform worker does not start.', { frame: why, cause })
}

export function toFailedOutcome(
  problem: Problem,
  log: readonly string[] = [],
): Exclude<CallOutcome, { kind: 'returned' }> {
  return { kind: 'failed', problem: toProblemRecord(problem), log }
}

/**
 * Parses the body and calls the function. Returns the outcome without a promise if the function is not asynchronous, because a promise costs
 * more than a small transform. Never throws or rejects. The function may change `head`. An ASCII body may be a text.
 */
export function startCall(
  callable: Callable,
  { head, body, syntax, serves, readState }: Omit<TransformCall, 'body'> & { readonly body: Uint8Array | string },
  log: string[],
): CallOutcome | Promise<CallOutcome> {
  let payload: JsonValue
  try {
    payload = parseBodyForCode(body, syntax)
  } catch (error) {
    return { kind: 'refused', problem: toProblemRecord(toProblem(error)), log: [] }
  }
  try {
    // the JSON of `head` has no undefined properties, but `input` has each one; a spread would cost 5 µs
    const { headers, query, url, path, method, source, event, receivedAt, deliveryId } = head
    const input = { payload, headers, query, url, path, method, source, event, receivedAt, deliveryId }
    let callState: CallState | undefined
    const context = {
      log: (message: unknown) => addLine(log, message),
      replay: serves !== true,
      // created at its first use, because most transforms have none
      get state(): TransformState {
        callState ??= createCallState(readState)
        return callState.state
      },
    }
    const value = callable.call(input, context)
    const effects: CallEffects = { log, takeWrites: () => callState?.takeWrites() ?? noWrites }
    return isSynchronous(value) ? buildReturnedOutcome(callable, value, effects) : awaitResult(callable, value, effects)
  } catch (thrown) {
    return buildFailedOutcome(callable, thrown, log)
  }
}

/** The effects of a call besides its result. */
type CallEffects = { readonly log: readonly string[]; readonly takeWrites: () => readonly StateWrite[] }

const noWrites: readonly StateWrite[] = []

/** If true, the value needs no `await`. The property `then` is not read here, because it may be a getter, which is code of the author. */
function isSynchronous(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return typeof value !== 'function'
  if (isProxy(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  const isPlain = prototype === Object.prototype || prototype === Array.prototype || prototype === null
  return isPlain && !Object.hasOwn(value, 'then')
}

async function awaitResult(callable: Callable, pending: unknown, effects: CallEffects): Promise<CallOutcome> {
  try {
    return buildReturnedOutcome(callable, await pending, effects)
  } catch (thrown) {
    return buildFailedOutcome(callable, thrown, effects.log)
  }
}

function buildFailedOutcome({ label, locate }: Callable, thrown: unknown, log: readonly string[]): CallOutcome {
  const refusal = readRefusal(thrown)
  if (refusal !== undefined) {
    return { kind: 'refused', problem: toProblemRecord(new Problem('payload-invalid', refusal)), log: [...log] }
  }
  const { what, at, frame } = buildThrownReport(thrown, locate)
  return toFailedOutcome(new Problem('transform-failed', `${label} threw ${what}${at}.`, { frame }), [...log])
}

/** The outcome with the JSON of the value; a failed one if the value is not plain data. */
function buildReturnedOutcome({ label }: Callable, value: unknown, { log, takeWrites }: CallEffects): CallOutcome {
  try {
    if (value === undefined) {
      const advice = "return {} to keep the mapping's action, null to skip"
      throw new Problem('transform-result-invalid', `${label} returned nothing: ${advice}.`)
    }
    return { kind: 'returned', json: toPlainJson(value), log: [...log], state: takeWrites() }
  } catch (error) {
    if (!(error instanceof NotPlainError)) return toFailedOutcome(toProblem(error), [...log])
    const detail = `${label} must return plain JSON data: ${error.message}.`
    return toFailedOutcome(new Problem('transform-result-invalid', detail), [...log])
  }
}
