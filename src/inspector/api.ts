// The admin API, called with the key of this tab.
import { forgetKey, readKey } from './key.ts'

/** A refusal of the gateway, in its own words. */
export class ApiError extends Error {
  readonly status: number
  constructor(status: number, sentence: string) {
    super(sentence)
    this.status = status
  }
}

/** Called when the key is no longer valid. */
let over: (why: string) => void = () => {}
export function onKeyExpired(listener: (why: string) => void): void {
  over = listener
}

export async function callApi(path: string, init: RequestInit = {}): Promise<Response> {
  const answer = await fetch(path, {
    ...init,
    headers: { ...init.headers, authorization: `Bearer ${readKey() ?? ''}` },
  })
  if (answer.ok) return answer
  const text = await answer.text()
  const sentence = readError(text) ?? `The gateway answered ${answer.status}.`
  if (answer.status === 401) {
    forgetKey()
    over(sentence)
  }
  throw new ApiError(answer.status, sentence)
}

function readError(text: string): string | undefined {
  try {
    const body: { error?: string } = JSON.parse(text)
    return body.error
  } catch {
    return undefined
  }
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const answer = await callApi(path, signal === undefined ? {} : { signal })
  // as: types.ts has the answers of the gateway that serves this page
  return (await answer.json()) as T
}

export async function post<T>(path: string, body?: object, signal?: AbortSignal): Promise<T> {
  const answer = await callApi(path, {
    method: 'POST',
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  })
  // as: see above
  return (await answer.json()) as T
}

/** Parameters without the blank ones. */
export function toQuery(fields: Readonly<Record<string, string | number | undefined>>): string {
  const filled = Object.entries(fields).filter(([, value]) => value !== undefined && value !== '')
  return new URLSearchParams(filled.map(([field, value]) => [field, String(value)])).toString()
}
