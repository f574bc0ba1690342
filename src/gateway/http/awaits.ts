// Waits for the next delivery of a hook with a session key: `POST <hooks.path>/<hook>/await`. The wait is in the store, so a caller may ask again
// after a restart, and at another gateway.
import type { IncomingMessage } from 'node:http'
import { newId } from '../../base/id.ts'
import { tryParseJson } from '../../base/json.ts'
import type { Answer } from '../../core/mapping/answer.ts'
import type { CheckedHead } from '../../core/mapping/delivery.ts'
import { describeFirstIssue } from '../../core/model/issue.ts'
import { Problem } from '../../core/model/problem.ts'
import { AwaitBody, type AwaitResource } from '../../model/api/await.ts'
import { type Await, type AwaitName, beginAwait, readAwait } from '../../store/awaits.ts'
import type { Clock, Store } from '../../store/store.ts'
import { inflateBody } from '../proofs/inflate.ts'
import type { Generation } from '../generation/generation.ts'
import { toIsoTime } from '../deliveries/records.ts'
import { readBody } from './body.ts'
import { addPreferenceApplied, retryAfterHeaders } from './run-resource.ts'
import { readPreferredWait, type Waiters } from './waiters.ts'

/** A request for a wait, with a valid token. */
export type AwaitCall = Pick<CheckedHead, 'headers'> & {
  readonly kind: 'await'
  readonly tokenId: string
  readonly name: AwaitName
  readonly withinSeconds: number
}

const suffix = '/await'
const maxBodyBytes = 8_192

/** The hook whose delivery this request waits for. Undefined without a valid token, if the path is that of a mapping, or if it means no hook. */
export function findAwaitedHook(
  { method, path, token }: Pick<CheckedHead, 'method' | 'path' | 'token'>,
  { findHook }: Pick<Generation, 'findHook'>,
): string | undefined {
  if (!path.endsWith(suffix) || method !== 'POST' || token !== 'valid' || findHook(path).isNamed) return undefined
  const hook = path.slice(0, -suffix.length)
  return findHook(hook).kind === 'unknown' ? undefined : hook
}

type AwaitParts = {
  readonly req: IncomingMessage
  readonly continueNow: () => void
  readonly hook: string
  readonly timeoutMs: number
}

/** Throws the refusals of the body. */
export async function readAwaitCall(
  { headers, tokenId = '' }: CheckedHead,
  { req, continueNow, hook, timeoutMs }: AwaitParts,
): Promise<AwaitCall> {
  const limit = maxBodyBytes
  const raw = await readBody(req, { limit, timeoutMs, continueNow })
  const body = await inflateBody(raw, { contentEncoding: headers['content-encoding'], isProved: false, limit })
  const given = tryParseJson(body.toString())
  if (given === undefined) throw new Problem('body-invalid', 'The body is not JSON.')
  const asked = AwaitBody.safeParse(given)
  if (!asked.success) throw new Problem('payload-invalid', `${describeFirstIssue(asked.error, given)}.`)
  const { key, id = newId(), withinSeconds } = asked.data
  return { kind: 'await', headers, tokenId, name: { hook, key, id }, withinSeconds }
}

/** The delay is too short for a person to notice; a read costs one look into an index. */
const readEveryMs = 500

type AwaitsParts = {
  readonly store: Pick<Store, 'cursor' | 'appendAll'>
  readonly waiters: Pick<Waiters, 'enter'>
  readonly clock: Clock
}

export type Awaits = {
  /** Stores the wait, or finds it again by its id, and shows how it stands. */
  answer(call: AwaitCall): Promise<Answer>
  /** The answer after the wait that the request prefers; undefined if it asks for none, or if `now` is the end. The function never rejects. */
  findLater(
    call: AwaitCall,
    now: Answer,
    response: Parameters<Waiters['enter']>[0],
  ): (() => Promise<Answer>) | undefined
}

export function createAwaits({ store, waiters, clock }: AwaitsParts): Awaits {
  function show({ id, key }: AwaitName, found: Await): Answer {
    const { endsAt, deliveryId = null } = found
    const state = deliveryId !== null ? 'arrived' : clock() < endsAt ? 'waiting' : 'expired'
    const shown: AwaitResource & { ok: true } = { ok: true, state, id, key, deliveryId, expiresAt: toIsoTime(endsAt) }
    const isOpen = state === 'waiting'
    const headers = { 'cache-control': 'no-store', ...(isOpen ? retryAfterHeaders : {}) }
    return { status: isOpen ? 202 : 200, body: JSON.stringify(shown), headers }
  }

  return {
    answer: async ({ name, withinSeconds }) =>
      show(name, await beginAwait(store, name, clock() + withinSeconds * 1_000)),
    findLater(call, now, response) {
      const preferred = now.status === 202 ? readPreferredWait(call.headers['prefer']) : undefined
      if (preferred === undefined) return undefined
      const { seconds } = preferred
      return async () => {
        const place = waiters.enter(response, call.tokenId)
        const until = performance.now() + seconds * 1_000
        for (let left = seconds * 1_000; left > 0; left = until - performance.now()) {
          if ((await place?.pause(Math.min(readEveryMs, left))) !== 'late') break
          // an outage of the store only prolongs the wait
          const found = await readAwait(store, call.name).catch(() => undefined)
          const later = found && show(call.name, found)
          if (later?.status !== 200) continue
          place?.leave()
          return addPreferenceApplied(later, seconds)
        }
        place?.leave()
        return now
      }
    },
  }
}
