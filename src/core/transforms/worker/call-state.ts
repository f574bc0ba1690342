// `context.state` of one call. The thread asks the main thread only at the first read of a key; a value that is set stays in the thread until
// the call returns. So a call that does not use the state costs nothing, and a loop over `set` costs the gateway nothing.
import type { JsonValue } from '../../../base/json.ts'
import { readDurationMs } from '../../../base/time.ts'
import { stateLimits, type StateOptions, type StateWrite, type TransformState } from '../../model/transform-state.ts'
import { NotPlainError, toPlainJson } from './plain.ts'

export type CallState = {
  readonly state: TransformState
  /** Returns the values that the call set, in the order in which their keys were first set. Later calls of `get` and `set` fail. */
  takeWrites(): StateWrite[]
}

// captured, because transforms may replace the globals
const { parse } = JSON
const { byteLength } = Buffer
const { test: isMatch } = RegExp.prototype
const invalidKey = /\p{Cc}|\p{Cs}/u

/** `ask`: asks the main thread for the JSON of a value. Undefined: the state is empty. */
export function createCallState(ask: ((key: string) => Promise<string | undefined>) | undefined): CallState {
  const read = new Map<string, Promise<string | undefined>>()
  const written = new Map<string, StateWrite>()
  let isOver = false

  /** Throws for an invalid key, for a call that uses too many keys, and after the end of the call. */
  function checkKey(method: string, key: unknown): asserts key is string {
    if (isOver)
      throw new Error(
        `state.${method} was called after the transform had ended. Await every promise that uses the state.`,
      )
    if (typeof key !== 'string') throw new TypeError(`state.${method} expects a text as its key, found ${typeof key}.`)
    // a control character separates the module from the key in the name of the stored value; a lone surrogate has no UTF-8
    if (key === '' || key.length > stateLimits.keyLength || isMatch.call(invalidKey, key)) {
      throw new TypeError(
        `state.${method} expects a key of 1 to ${stateLimits.keyLength} characters without control characters.`,
      )
    }
    if (read.has(key) || written.has(key)) return
    if (new Set([...read.keys(), ...written.keys()]).size < stateLimits.keysOfCall) return
    throw new Error(
      `state.${method}: a call may use at most ${stateLimits.keysOfCall} keys. Store a list in one value.`,
    )
  }

  function readJson(key: string): Promise<string | undefined> {
    const known = read.get(key) ?? ask?.(key) ?? Promise.resolve(undefined)
    read.set(key, known)
    return known
  }

  const state: TransformState = {
    async get<Value = JsonValue>(key: string): Promise<Value | undefined> {
      checkKey('get', key)
      const own = written.get(key)
      const json = own === undefined ? await readJson(key) : own[1]
      // as: the caller names the type of the value that it has set
      return typeof json === 'string' ? (parse(json) as Value) : undefined
    },
    set(key, value, options) {
      checkKey('set', key)
      written.set(key, [key, value === undefined ? null : toJson(value), readTime(options)])
    },
  }
  return {
    state,
    takeWrites: () => {
      isOver = true
      return [...written.values()]
    },
  }
}

function toJson(value: unknown): string {
  let json: string
  try {
    json = toPlainJson(value)
  } catch (error) {
    if (!(error instanceof NotPlainError)) throw error
    throw new TypeError(`state.set expects plain JSON data: ${error.message.replace(/^result/, 'value')}.`, {
      cause: error,
    })
  }
  const bytes = byteLength(json)
  if (bytes <= stateLimits.valueBytes) return json
  throw new RangeError(`state.set: the value has ${bytes} bytes as JSON, expected at most ${stateLimits.valueBytes}.`)
}

function readTime(options: StateOptions | undefined): number {
  const given = options?.for
  if (given === undefined) return stateLimits.defaultMs
  const ms = readDurationMs(given)
  if (ms !== undefined && ms > 0 && ms <= stateLimits.longestMs) return ms
  throw new TypeError('state.set: "for" must be a duration such as 10m, 1h or 30d, more than 0 and at most 365d.')
}
