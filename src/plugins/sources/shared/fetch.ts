// `fetch` for sources: limited in time and size, it ends with the source, and follows no redirect.
import { abortAfter } from '../../../base/time.ts'
import { SourceFailure } from '../../../model/source.ts'

const fetchTimeoutMs = 120_000
const maxBytes = 32 * 1024 * 1024

/** Throws a `SourceFailure` that names the host, and the cause of a broken connection. `signal`: aborted when the source stops. */
export function createLimitedFetch(signal: AbortSignal): typeof fetch {
  return async (input, init) => {
    const limited = abortAfter(fetchTimeoutMs, signal, ...[init?.signal ?? []].flat())
    const request = new Request(input, { redirect: 'manual', ...init, signal: limited })
    const { host } = new URL(request.url)
    let answer: Response
    try {
      // the signal of a request that nothing refers to any more is collected as garbage: https://github.com/nodejs/node/issues/55428
      answer = await fetch(request, { signal: limited })
    } catch (cause) {
      signal.throwIfAborted()
      init?.signal?.throwIfAborted()
      throw new SourceFailure(`${host} does not answer${describeCause(cause)}.`, { cause })
    }
    const { status, statusText, headers, body } = answer
    return new Response(body && body.pipeThrough(createLimit(host)), { status, statusText, headers })
  }
}

/** The code of the system, such as ECONNREFUSED. The message of an exception may quote a header. */
function describeCause(cause: unknown): string {
  if (!(cause instanceof Error)) return ''
  if (cause.name === 'TimeoutError') return ` within ${fetchTimeoutMs / 1_000} s`
  return cause.cause instanceof Error && 'code' in cause.cause ? ` (${String(cause.cause.code)})` : ''
}

function createLimit(host: string): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  let size = 0
  return new TransformStream({
    transform(chunk, controller) {
      size += chunk.length
      if (size > maxBytes)
        controller.error(new SourceFailure(`The answer of ${host} is over ${maxBytes / 1024 ** 2} MiB. Ask for less.`))
      else controller.enqueue(chunk)
    },
  })
}
