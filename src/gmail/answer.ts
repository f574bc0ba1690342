// What is sent to a Google API and what comes back.

export type GoogleRequest = {
  readonly method: 'GET' | 'POST' | 'PUT'
  readonly url: string
  readonly body?: object | URLSearchParams
  /** Statuses beside 2xx that the caller understands. */
  readonly allow?: readonly number[]
}
export type GoogleAnswer = { readonly status: number; readonly body: unknown }

/** The reasons in an answer of any Google API, old and new style, and of the token endpoint. */
export function toReasons(body: unknown): string[] {
  const error = readKey(body, 'error')
  const listed = [readKey(error, 'errors'), readKey(error, 'details')].flat().map((entry) => readKey(entry, 'reason'))
  // a reason is a word; anything else may quote what was sent
  return [error, ...listed, readKey(error, 'status')].filter(
    (reason): reason is string => typeof reason === 'string' && /^[\w.-]{1,60}$/.test(reason),
  )
}

function readKey(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined
}
