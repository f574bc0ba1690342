// Calls of the operator about the kept refused requests: to list them, to run the requests that are valid now, or to delete them.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Problem, toProblem } from '../../../core/model/problem.ts'
import type { QuarantinedRequest } from '../../../store/quarantine.ts'
import type { Store } from '../../../store/store.ts'
import { describeKeptReason, type Quarantine, type RefusalRecord } from './quarantine.ts'
import { describeTrace } from './reasons.ts'
import { type createQuarantineKeys, type RawRequest, unseal } from './seal.ts'

/** A refused request and the time of its arrival. `request` has all its credentials. */
export type RefusedRequest = Pick<QuarantinedRequest, 'requestId' | 'receivedAt' | 'hook'> & {
  readonly request: RawRequest
}

/** `after`: the `next` of the previous call; undefined for the first call. */
export type RefusedQuery = {
  readonly hook: string | undefined
  /** Milliseconds since the epoch. */
  readonly since: number | undefined
  readonly after: number | undefined
}

type RetryResult = {
  readonly ran: number
  /** Requests that repeat a delivery, for example because their sender sent them again. */
  readonly repeated: number
  readonly stillRefused: number
  /** Why requests are still refused, and the number of requests for each reason. */
  readonly reasons: readonly { readonly reason: string; readonly count: number }[]
  readonly next: number | undefined
}

/**
 * A call of `retry` or `drop` ends after some seconds, so that no request takes long. If requests may be left, it returns `next` for the call
 * after it.
 */
export type RefusedCalls = {
  /** The newest `limit` kept refusals, oldest first. */
  list(limit: number): Promise<RefusalRecord[]>
  /** The kept refusal with this request id. */
  find(requestId: string): Promise<RefusalRecord | undefined>
  /** Whether a refused request still waits to be written. */
  isWaiting(requestId: string): boolean
  /**
   * Verifies each request again, with the time of its arrival as the clock, and runs those that may enter. `isDry`: only counts what would
   * happen.
   */
  retry(query: RefusedQuery, options: { readonly isDry: boolean }): Promise<RetryResult>
  drop(query: RefusedQuery): Promise<{ readonly dropped: number; readonly next: number | undefined }>
}

const pageSize = 50
const maxPassMs = 5_000
/** Problems of the gateway, not of a request: all other requests would fail too. */
const gatewayFailures: ReadonlySet<string> = new Set(['store-unavailable', 'store-full', 'store-locked'])

export function createRefusedCalls(parts: {
  readonly store: Pick<Store, 'quarantinedRequests' | 'sealedContent' | 'noteRefusals' | 'deleteSealed'>
  readonly keys: ReturnType<typeof createQuarantineKeys>
  readonly token: () => string | undefined
  readonly quarantine: Pick<Quarantine, 'flush' | 'isWaiting'>
  readonly receiveRefused: (
    refused: RefusedRequest,
    options: { readonly isDry: boolean },
  ) => Promise<'ran' | 'repeated'>
}): RefusedCalls {
  const { store, keys, token, quarantine, receiveRefused } = parts

  /** Calls `act` for each page. Returns the place of the last request that was visited, or undefined after the end. */
  async function walk(
    { hook, since, after = 0 }: RefusedQuery,
    act: (page: readonly QuarantinedRequest[]) => Promise<void>,
  ): Promise<number | undefined> {
    await quarantine.flush()
    const startedAt = performance.now()
    for (let at = after; ;) {
      const page = await store.quarantinedRequests({ limit: pageSize, after: at, hook, since })
      const last = page.at(-1)?.place
      if (last === undefined) return undefined
      await act(page)
      at = last
      if (performance.now() - startedAt > maxPassMs) return at
      await nextTurn()
    }
  }

  async function open(kept: QuarantinedRequest): Promise<RawRequest | undefined> {
    const sealed = await store.sealedContent(kept.requestId)
    return sealed && unseal(sealed, kept, await keys(token() ?? ''))
  }

  async function run(kept: QuarantinedRequest, isDry: boolean): Promise<'ran' | 'repeated' | 'gone' | Problem> {
    try {
      const request = await open(kept)
      if (request === undefined) return 'gone'
      const { requestId, receivedAt, hook } = kept
      return await receiveRefused({ requestId, receivedAt, hook, request }, { isDry })
    } catch (error) {
      const problem = toProblem(error)
      if (gatewayFailures.has(problem.code)) throw problem
      return problem
    }
  }

  return {
    isWaiting: quarantine.isWaiting,
    list: async (limit) => (await store.quarantinedRequests({ limit })).map(parseRefusal),
    async find(requestId) {
      const [kept] = await store.quarantinedRequests({ limit: 1, requestId })
      return kept && parseRefusal(kept)
    },
    async retry(query, { isDry }) {
      const counts = { ran: 0, repeated: 0, gone: 0, stillRefused: 0 }
      const reasons = new Map<string, number>()
      const next = await walk(query, async (page) => {
        const done: string[] = []
        const refused: { requestId: string; refusal: string }[] = []
        try {
          for (const kept of page) {
            const outcome = await run(kept, isDry)
            if (outcome instanceof Problem) {
              counts.stillRefused += 1
              const reason = describeRefusal(outcome)
              reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
              if (outcome.code !== 'conflict')
                refused.push({ requestId: kept.requestId, refusal: toRefusal(kept, outcome) })
            } else {
              counts[outcome] += 1
              done.push(kept.requestId)
            }
            await nextTurn()
          }
        } finally {
          // if the process is killed before this line, the page runs again, and each of its deliveries is then a duplicate
          if (!isDry && done.length > 0) await store.deleteSealed(done)
          if (!isDry && refused.length > 0) await store.noteRefusals(refused)
        }
      })
      const { ran, repeated, stillRefused } = counts
      return { ran, repeated, stillRefused, reasons: [...reasons].map(([reason, count]) => ({ reason, count })), next }
    },
    async drop(query) {
      let dropped = 0
      const next = await walk(query, async (page) => {
        dropped += await store.deleteSealed(page.map(({ requestId }) => requestId))
      })
      return { dropped, next }
    },
  }
}

function parseRefusal({ refusal }: QuarantinedRequest): RefusalRecord {
  // as: only the gateway writes this text
  return JSON.parse(refusal) as RefusalRecord
}

/** The refusal as a sentence for the operator. For an invalid proof, it says why the proof is invalid. */
function describeRefusal(problem: Problem): string {
  const failed = problem.code === 'unauthorized' ? problem.trace.filter(({ matched }) => !matched) : []
  return failed.length === 0 ? describeKeptReason(problem) : describeTrace(failed).join('; ')
}

/** The stored refusal of a kept request, as JSON, with the reason why it is refused now. */
function toRefusal(kept: QuarantinedRequest, problem: Problem): string {
  const { code, status, trace } = problem
  return JSON.stringify({ ...parseRefusal(kept), code, status, error: describeKeptReason(problem), trace })
}
