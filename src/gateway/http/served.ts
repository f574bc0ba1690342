// Requests that a runner answers: `<hooks.path>/runners/<name>`. The runner checks its own credentials; this file does what a stranger makes necessary.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { attemptWithin } from '../../base/time.ts'
import type { CheckedHead } from '../../core/mapping/delivery.ts'
import { urlSecretHeader } from '../../core/model/delivery.ts'
import { Problem } from '../../core/model/problem.ts'
import { findServedSection, type Runner } from '../../model/runner.ts'
import { inflateBody } from '../proofs/inflate.ts'
import type { Generation } from '../generation/generation.ts'
import type { Admission } from './admission.ts'
import { readBody } from './body.ts'
import type { StreamedAnswer } from './runs.ts'
import type { BodyMemory } from './unproven.ts'

type Serve = NonNullable<Runner['serve']>

/** A request for a runner. Its body takes memory for strangers until the answer begins. */
export type ServedCall = {
  readonly kind: 'served'
  readonly serve: Serve
  readonly request: Request
  readonly head: CheckedHead
  readonly memory: BodyMemory
}

const maxBodyBytes = 262_144
/** The time in which an answer must begin. */
const answerMs = 30_000
/** The longest time of a stream. Its client connects again. */
const streamMs = 3_600_000
/** After the end of its signal, a stream has this time for its last words. */
const graceMs = 10_000

const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** What answers the requests to a path after `hooks.path`; undefined if no runner of the live configuration does. */
export function findServe(
  path: string,
  { config }: Pick<Generation, 'config'>,
  findRunner: (name: string) => Runner | undefined,
): Serve | undefined {
  const served = findServedSection(path, config.runners)
  const runner = served?.rest === '' ? findRunner(served.section) : undefined
  return runner?.serve?.bind(runner)
}

type ReadParts = {
  readonly req: IncomingMessage
  readonly continueNow: () => void
  readonly serve: Serve
  readonly memory: BodyMemory
  readonly timeoutMs: number
}

/** Throws `rate-limited` for a client with too many failed tokens, `method-not-allowed`, and the refusals of the body. */
export async function readServedCall(
  head: CheckedHead,
  { serve, req, continueNow, memory, timeoutMs }: ReadParts,
  { requireUnlocked }: Pick<Admission, 'requireUnlocked'>,
): Promise<ServedCall> {
  const { method, url, headers, client } = head
  const limit = maxBodyBytes
  requireUnlocked(head)
  if (!methods.has(method)) {
    const allow = [...methods].join(', ')
    throw new Problem('method-not-allowed', `A runner accepts only ${allow}.`, { allow })
  }
  try {
    const take = (size: number) => memory.take(client, size, limit)
    const raw = await readBody(req, { limit, timeoutMs, continueNow, take })
    const contentEncoding = headers['content-encoding']
    const body = await inflateBody(raw, { contentEncoding, isProved: false, limit, take })
    return { kind: 'served', serve, request: toRequest({ method, url, headers }, body), head, memory }
  } catch (error) {
    memory.release()
    throw error
  }
}

/** The body was inflated, and the secret of the URL becomes a token. */
const droppedHeaders: ReadonlySet<string> = new Set(['content-encoding', 'content-length', urlSecretHeader])

function toRequest(
  { method, url, headers }: Pick<CheckedHead, 'method' | 'url' | 'headers'>,
  body: Buffer<ArrayBuffer>,
): Request {
  const secret = headers[urlSecretHeader]
  const kept = Object.entries(headers).filter(([name]) => !droppedHeaders.has(name))
  try {
    const hasBody = method !== 'GET' && method !== 'HEAD'
    const request = new Request(new URL(url, 'http://localhost'), {
      method,
      headers: kept,
      body: hasBody ? body : null,
    })
    if (secret !== undefined && (headers['authorization'] ?? '') === '')
      request.headers.set('authorization', `Bearer ${secret}`)
    return request
  } catch (cause) {
    throw new Problem('request-malformed', 'The request is not well-formed HTTP.', { cause })
  }
}

export type Served = {
  /** Throws `unauthorized` if the runner answers 401, and `internal-error` if it fails or is late. */
  answer(call: ServedCall, response: ServerResponse): Promise<StreamedAnswer>
  /** Ends the streams: the runners of another configuration answer from now on, or the gateway stops. */
  end(): void
}

export function createServed({ refuseToken }: Pick<Admission, 'refuseToken'>): Served {
  /** What ends each stream. */
  const streams = new Set<() => void>()
  /** The number of calls of `end`. */
  let ends = 0

  return {
    async answer({ serve, request, head, memory }, response) {
      const ending = new AbortController()
      const abort = () => ending.abort()
      response.once('close', abort)
      if (response.closed) abort()
      const endsBefore = ends
      try {
        const attempt = await attemptWithin(answerMs, () => serve(request, { signal: ending.signal }))
        if (attempt.kind !== 'ended') throw buildFailure(attempt)
        const { value } = attempt
        if (value.status === 401) {
          await value.body?.cancel()
          return refuseToken(head)
        }
        const answer = await toAnswer(value)
        if (answer.stream === undefined || response.closed) return answer
        const end = () => {
          abort()
          setTimeout(() => response.destroy(), graceMs).unref()
        }
        const late = setTimeout(end, streamMs).unref()
        streams.add(end)
        response.once('close', () => {
          clearTimeout(late)
          streams.delete(end)
        })
        // the runner may have been replaced while it answered
        if (ends > endsBefore) end()
        return answer
      } finally {
        memory.release()
      }
    },
    end() {
      ends += 1
      for (const each of streams) each()
    },
  }
}

function buildFailure(
  attempt: { readonly kind: 'late' } | { readonly kind: 'threw'; readonly thrown: unknown },
): Error {
  if (attempt.kind === 'late')
    return new Problem('internal-error', 'The gateway failed on this request. Its log has the reason.', {
      cause: new Error(`A runner did not answer a request within ${answerMs / 1_000} s.`),
    })
  const { thrown } = attempt
  return thrown instanceof Error ? thrown : new Error('A runner threw something that is no error.', { cause: thrown })
}

async function toAnswer({ status, headers: given, body }: Response): Promise<StreamedAnswer> {
  const headers = Object.fromEntries(given)
  if (body === null) return { status, body: undefined, headers }
  if (/^text\/event-stream\s*(?:;|$)/i.test(headers['content-type'] ?? '')) {
    // as: Node's declaration of the same class
    const stream = Readable.fromWeb(body as ReadableStream)
    // a stop must not wait for a connection on which a stream has just ended
    return {
      status,
      body: undefined,
      headers: { ...headers, 'cache-control': 'no-store', connection: 'close' },
      stream,
    }
  }
  return { status, body: await new Response(body).text(), headers: { 'cache-control': 'no-store', ...headers } }
}
