// The faults of the other side that the checks of all kinds share.

/** The wait that an answer with a limit asks for. */
export const retryAfterMs = 7_000
const patienceMs = 1_000

/** The answer to a request. `stop` aborts what made the request. */
export type Fault = (request: Request, stop: () => void) => Promise<Response>

/** Calls `work` while `fetch` of the process is replaced. */
export async function replaceFetch<Result>(
  fetch: typeof globalThis.fetch,
  work: () => Promise<Result>,
): Promise<Result> {
  const usualFetch = globalThis.fetch
  globalThis.fetch = fetch
  try {
    return await work()
  } finally {
    globalThis.fetch = usualFetch
  }
}

export function answer(status: number, body: object = {}): Fault {
  return async () => Response.json(body, { status, headers: { 'retry-after': String(retryAfterMs / 1_000) } })
}

export async function breakConnection({ url }: Request): Promise<Response> {
  const cause = Object.assign(new Error(`read ECONNRESET ${url}`), { code: 'ECONNRESET' })
  throw new TypeError('fetch failed', { cause })
}

/** Aborts, and answers nothing. `isIgnored`: whether the request went on. */
export function createStall(): { readonly fault: Fault; readonly isIgnored: () => boolean } {
  let ignored = false
  return {
    isIgnored: () => ignored,
    async fault({ signal }, stop) {
      stop()
      ignored = (await waitFor(new Promise((resolve) => onAbort(signal, () => resolve(true))))) === undefined
      throw new DOMException('This operation was aborted', 'AbortError')
    },
  }
}

function onAbort(signal: AbortSignal, call: () => void): void {
  if (signal.aborted) call()
  else signal.addEventListener('abort', call)
}

/** What a promise resolves to; undefined if it takes too long. */
export async function waitFor<Result>(promise: Promise<Result>, ms = patienceMs): Promise<Result | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** The texts of the options that are long enough to be a secret, apart from URLs. */
export function listLongTexts(value: unknown): string[] {
  if (typeof value === 'string') return value.length >= 8 && !URL.canParse(value) ? [value] : []
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(listLongTexts) : []
}
