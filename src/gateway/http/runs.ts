// The runs as the caller that started them sees them: `<hooks.path>/runs/<runId>`, and the answer to a request that waits for its runs. A
// caller sees no text that is for the operator: no recipient, no error of a provider.
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { hasEnded, type Job } from '../../model/job.ts'
import type { Log } from '../../base/log.ts'
import { Problem } from '../../core/model/problem.ts'
import type { CheckedHead } from '../../core/mapping/delivery.ts'
import { readWaits } from '../deliveries/waits.ts'
import { skippedAnswer, toAcceptedAnswer } from '../deliveries/answers.ts'
import type { Answer } from '../../core/mapping/answer.ts'
import type { Generation } from '../generation/generation.ts'
import type { Progress } from '../../store/progress.ts'
import type { DeliveryRecord } from '../../store/records.ts'
import type { Clock, Store } from '../../store/store.ts'
import type { Access } from './access.ts'
import type { Admission } from './admission.ts'
import type { Auditor } from './audit.ts'
import {
  addPreferenceApplied,
  addRuns,
  retryAfterHeaders,
  readReceipt,
  shownStates,
  toEventId,
  toRunAnswer,
} from './run-resource.ts'
import { type PreferredWait, readPreferredWait, type Waiter, type Waiters } from './waiters.ts'

/** A request for a run, with a valid token. */
export type RunCall = Pick<CheckedHead, 'headers'> & {
  readonly kind: 'run'
  readonly method: (typeof methods)[number]
  readonly runId: string
  readonly tokenId: string
}
const methods = ['GET', 'HEAD', 'DELETE'] as const

/** An answer whose body may be a stream. */
export type StreamedAnswer = Answer & { readonly stream?: Readable }

/** The wait that a request asks for. Times are in seconds. */
type RequestedWait =
  | (PreferredWait & { readonly kind: 'delivery'; readonly tokenId: string })
  | { readonly kind: 'run'; readonly request: RunCall; readonly seconds: number }
  | { readonly kind: 'stream'; readonly request: RunCall }

/** The request for a run. Throws `method-not-allowed` first, so that it does not count as a failed token. */
export function readRunCall(head: CheckedHead, { checkToken }: Pick<Admission, 'checkToken'>): RunCall {
  const method = methods.find((each) => each === head.method)
  const allow = methods.join(', ')
  if (method === undefined) throw new Problem('method-not-allowed', `A run accepts only ${allow}.`, { allow })
  checkToken(head)
  return {
    kind: 'run',
    method,
    headers: head.headers,
    runId: head.path.slice('runs/'.length),
    tokenId: head.tokenId ?? '',
  }
}

/** Only a request with a token can wait: only a token can ask for the run afterwards. */
export function readWait(
  given: RunCall | { readonly kind: 'delivery'; readonly head: WaitingHead },
): RequestedWait | undefined {
  if (given.kind === 'delivery') {
    const { headers, admitted } = given.head
    if (admitted.tokenId === undefined) return undefined
    const preferred = readPreferredWait(headers['prefer'])
    return preferred && { kind: 'delivery', tokenId: admitted.tokenId, ...preferred }
  }
  if (given.method !== 'GET') return undefined
  if (/(?:^|,)\s*text\/event-stream\s*(?:;|,|$)/i.test(given.headers['accept'] ?? ''))
    return { kind: 'stream', request: given }
  const preferred = readPreferredWait(given.headers['prefer'])
  return preferred && { kind: 'run', request: given, seconds: preferred.seconds }
}

type WaitingHead = {
  readonly headers: Readonly<Record<string, string>>
  readonly admitted: { readonly tokenId?: string | undefined }
}

type RunsParts = {
  readonly access: Pick<Access, 'mayUseRun' | 'findNameById'>
  readonly auditor: Pick<Auditor, 'perform'>
  readonly store: Pick<Store, 'job' | 'delivery' | 'progress' | 'endJob' | 'waits' | 'nodes'>
  readonly clock: Clock
  readonly generation: () => Generation
  readonly waiters: Pick<Waiters, 'enter'>
  /** Called when a run was cancelled, so that it stops soon. */
  readonly lookForJobs: () => void
  readonly log: Log
}

export type Runs = {
  /** The present state of a run. Throws `not-found` unless the token started it. DELETE cancels the run first: `conflict` if it has ended. */
  answer(request: RunCall): Promise<Answer>
  /**
   * The answer after a wait of up to a minute, or at once a stream of up to a quarter of an hour. The caller must have released its
   * generation. `now`: the answer without a wait. Never rejects.
   */
  answerLater(requested: RequestedWait, now: Answer, response: ServerResponse): Promise<StreamedAnswer>
}

/** After this silence a stream sends a comment, because proxies and browsers close silent connections. */
const silenceMs = 15_000
/** The longest time of a stream. Its client continues with `Last-Event-ID`. A stream whose client does not read also ends then. */
const streamMs = 900_000
/** After `streamMs`, the client must read the rest within this time; then the stream is cut. */
const graceMs = 10_000

export function createRuns({ store, access, auditor, waiters, generation, lookForJobs, clock, log }: RunsParts): Runs {
  async function findStarted({ runId, tokenId }: Pick<RunCall, 'runId' | 'tokenId'>): Promise<Job | undefined> {
    if (!/^[\da-f-]{36}$/.test(runId)) return undefined
    const job = await store.job(runId)
    return job !== undefined && isStartedBy(job, tokenId) ? job : undefined
  }

  function isStartedBy({ planned }: Pick<Job, 'planned'>, tokenId: string): boolean {
    return (
      (planned.kind === 'agent' || planned.kind === 'deliver') &&
      access.mayUseRun(tokenId, planned.startedBy, generation())
    )
  }

  async function readRunAnswer(job: Job): Promise<Answer> {
    const waits = await readWaits([job], { store, config: generation().config, now: clock(), isOutsider: true })
    return toRunAnswer(job, waits.get(job.id))
  }

  async function requireStarted(request: RunCall): Promise<Job> {
    const job = await findStarted(request)
    // an unknown id and a run of another token get the same message: a caller must not learn which ids exist
    if (job === undefined) throw new Problem('not-found', 'No run that this token started has this id.')
    return job
  }

  async function answer(request: RunCall): Promise<Answer> {
    if (request.method !== 'DELETE') return readRunAnswer(await requireStarted(request))
    const name = access.findNameById(request.tokenId, generation()) ?? 'a token'
    const act = { by: { kind: 'token', name }, act: 'cancel', target: request.runId } as const
    return auditor.perform(act, () => cancel(request))
  }

  async function cancel(request: RunCall): Promise<Answer> {
    const job = await requireStarted(request)
    const ended = await store.endJob(job.id, { state: 'cancelled', reason: 'Cancelled by the caller that started it.' })
    if (ended === undefined) {
      const { state } = (await findStarted(request)) ?? job
      throw new Problem('conflict', `The run has ended already: its state is ${shownStates[state]}.`)
    }
    lookForJobs()
    log.info({ jobId: job.id }, `run ${job.id} was cancelled by the caller that started it`)
    // the turn of a run that is ending must still be stopped
    return { ...(await readRunAnswer((await findStarted(request)) ?? job)), status: ended === 'ended' ? 200 : 202 }
  }

  async function waitForDelivery(
    { tokenId, seconds, showsRuns }: Extract<RequestedWait, { kind: 'delivery' }>,
    now: Answer,
    response: ServerResponse,
  ): Promise<Answer> {
    const receipt = readReceipt(now)
    if (receipt === undefined) return now
    const until = performance.now() + seconds * 1_000
    const place = waiters.enter(response, tokenId)
    try {
      for (;;) {
        const record = await store.delivery(receipt.deliveryId)
        const runs = record?.jobs.filter(({ planned }) => planned.kind !== 'wake') ?? []
        // a parked delivery waits for a person; a repeated one may belong to another token
        if (record === undefined || record.state === 'parked' || !runs.every((run) => isStartedBy(run, tokenId)))
          return now
        const receiptNow = receipt.isPending ? buildCurrentReceipt(now, record) : now
        // the newest run usually ends last
        const open = runs.findLast(({ state }) => !hasEnded(state))
        if (record.state !== 'pending' && open === undefined)
          return addPreferenceApplied(showsRuns ? addRuns(receiptNow, runs) : receiptNow, seconds)
        const id = open?.id ?? record.deliveryId
        const left = until - performance.now()
        const isReached = (progress: Progress | undefined) => !isWaiting(progress)
        if (left <= 0 || (await place?.waitUntil(id, isReached, left)) !== 'reached')
          return buildNotYetAnswer(receiptNow, open)
      }
    } catch {
      // the store failed, but the request is stored, and `now` is true
      return now
    } finally {
      place?.leave()
    }
  }

  function buildNotYetAnswer(receipt: Answer, open: Job | undefined): Answer {
    const place = open && { location: `${generation().config.hooks.path}/runs/${open.id}` }
    return { ...receipt, status: 202, headers: { ...receipt.headers, ...place, ...retryAfterHeaders } }
  }

  async function waitForRun(
    { request, seconds }: Extract<RequestedWait, { kind: 'run' }>,
    now: Answer,
    response: ServerResponse,
  ): Promise<Answer> {
    const place = waiters.enter(response, request.tokenId)
    try {
      const isReached = (progress: Progress | undefined) => !isWaiting(progress)
      if (now.headers?.['retry-after'] !== undefined) await place?.waitUntil(request.runId, isReached, seconds * 1_000)
      const job = await findStarted(request)
      if (job === undefined) return now
      const shown = await readRunAnswer(job)
      return hasEnded(job.state) ? addPreferenceApplied(shown, seconds) : shown
    } catch {
      return now
    } finally {
      place?.leave()
    }
  }

  function openStream(request: RunCall, now: Answer, response: ServerResponse): StreamedAnswer {
    // the client has gone: no event would release the resources of a stream
    if (response.closed) return { status: 204, body: undefined }
    const lastId = request.headers['last-event-id']
    // after a 204, a client that has everything does not connect again
    if (now.headers?.['retry-after'] === undefined && toEventId(now.body ?? '') === lastId)
      return { status: 204, body: undefined }
    const place = waiters.enter(response, request.tokenId)
    const leaving = setTimeout(() => place?.leave(), streamMs).unref()
    const cutting = setTimeout(() => response.destroy(), streamMs + graceMs).unref()
    response.once('close', () => {
      clearTimeout(leaving)
      clearTimeout(cutting)
    })
    // a small buffer: a client that does not read gets newer states later, and not every state
    const stream = Readable.from(streamRun(request, place, lastId), { objectMode: false, highWaterMark: 16_384 })
    // a stop must not wait for a connection on which a stream has just ended
    const type = { 'content-type': 'text/event-stream; charset=utf-8' }
    const headers = { ...type, 'cache-control': 'no-store', connection: 'close' }
    return { status: 200, body: undefined, headers, stream }
  }

  /** The states of a run until its end, each complete. If no place is free, only the present state is sent, and the client connects again. */
  async function* streamRun(
    request: RunCall,
    place: Waiter | undefined,
    lastId: string | undefined,
  ): AsyncGenerator<string> {
    let sent = lastId
    yield 'retry: 5000\n\n'
    try {
      for (;;) {
        const [before] = await store.progress([request.runId])
        const job = await findStarted(request)
        if (job === undefined) return
        const { body = '' } = await readRunAnswer(job)
        const id = toEventId(body)
        // the bodies are compared, because the reason why the run waits may change while its progress does not
        yield id === sent ? ': nothing changed\n\n' : `id: ${id}\nevent: run\ndata: ${body}\n\n`
        sent = id
        if (hasEnded(job.state) || place === undefined) return
        const isReached = (progress: Progress | undefined) => formatChange(progress) !== formatChange(before)
        if ((await place.waitUntil(job.id, isReached, silenceMs)) === 'over') return
      }
    } catch {
      // the store failed: the client connects again
    } finally {
      place?.leave()
    }
  }

  return {
    answer,
    async answerLater(requested, now, response) {
      if (requested.kind === 'stream') return openStream(requested.request, now, response)
      return requested.kind === 'run' ? waitForRun(requested, now, response) : waitForDelivery(requested, now, response)
    },
  }
}

function isWaiting(progress: Progress | undefined): boolean {
  return progress?.state === 'queued' || progress?.state === 'running' || progress?.state === 'pending'
}

function formatChange(progress: Progress | undefined): string {
  return `${progress?.state} ${progress?.change}`
}

/** The present receipt of a delivery whose first answer was `pending`. */
function buildCurrentReceipt(first: Answer, { deliveryId, state, jobs }: DeliveryRecord): Answer {
  if (state === 'skipped') return skippedAnswer
  const actions = jobs.flatMap(({ planned }) => ('action' in planned ? [planned] : []))
  if (actions.length === 0) return first
  const { headers } = first
  return { ...toAcceptedAnswer(deliveryId, actions, jobs), ...(headers && { headers }) }
}
