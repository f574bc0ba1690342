// The pipe from request to answer: admit, decide and store, answer. The answer of success is sent after the delivery is stored.
import { toProblem } from '../../core/model/problem.ts'
import type { Answer } from '../../core/mapping/answer.ts'
import type { Generation } from '../generation/generation.ts'
import { toHookLabel } from '../../core/mapping/hook.ts'
import type { AdmittedRequest, Arrivals } from '../deliveries/arrivals.ts'
import type { RefusedRequest } from '../deliveries/refused/calls.ts'
import type { Quarantine } from '../deliveries/refused/quarantine.ts'
import type { Entry, EntryResult, Incoming } from './entry.ts'
import type { Refuser } from './refuse.ts'
import type { Refusals } from './refusals.ts'
import { readWait, type Runs, type StreamedAnswer } from './runs.ts'
import type { Awaits } from './awaits.ts'
import type { Served, ServedCall } from './served.ts'
import { takeUrlSecret } from './target.ts'

type ReceiverParts = {
  readonly generation: () => Generation
  /** Keeps a generation from retiring while a request uses it. Call the returned function at the end. */
  readonly acquire: (generation: Generation) => () => void
  readonly entry: Entry
  readonly arrivals: Arrivals
  readonly runs: Runs
  readonly awaits: Awaits
  readonly served: Pick<Served, 'answer'>
  readonly refuse: Refuser
  readonly refusals: Pick<Refusals, 'keepsRequests' | 'forget' | 'noteRan'>
  readonly quarantine: Pick<Quarantine, 'noteAdmitted'>
}

export type Receiver = {
  /** The only function that sees a whole request. It always returns an answer and never throws. */
  receive(incoming: Incoming): Promise<StreamedAnswer>
  /** Runs a refused request if it may enter now. `isDry`: stores nothing. `repeated`: it repeats a delivery. Throws if it is still refused. */
  receiveRefused(refused: RefusedRequest, options: { readonly isDry: boolean }): Promise<'ran' | 'repeated'>
}

export function createReceiver(parts: ReceiverParts): Receiver {
  const { entry, arrivals, runs, awaits, served, refuse, refusals, quarantine } = parts

  async function receive(incoming: Incoming): Promise<StreamedAnswer> {
    const generation = parts.generation()
    takeUrlSecret(incoming.req, generation)
    const release = parts.acquire(generation)
    let later: (() => Promise<StreamedAnswer>) | undefined
    let answer: Answer
    try {
      const admitted = await entry.admitRequest(incoming, generation)
      if (admitted.kind === 'served') return await served.answer(admitted, incoming.res)
      answer = await answerAdmitted(admitted, generation, incoming.arrived)
      later = findLater(admitted, answer, incoming)
      if (refusals.keepsRequests) refusals.forget(incoming.requestId)
    } catch (error) {
      return refuse(toProblem(error), incoming, generation)
    } finally {
      release()
    }
    // a request that waits keeps no generation in use
    return later === undefined ? answer : later()
  }

  async function answerAdmitted(
    admitted: Exclude<EntryResult, ServedCall>,
    generation: Generation,
    arrived: Incoming['arrived'],
  ): Promise<Answer> {
    if (admitted.kind === 'run') return runs.answer(admitted)
    if (admitted.kind === 'await') return awaits.answer(admitted)
    if (admitted.kind === 'handshake') return admitted.answer
    noteAdmitted(admitted)
    const earlier = arrived && ({ kind: 'elsewhere', requestId: arrived.id, receivedAt: arrived.at } as const)
    return (await arrivals.answer(admitted, generation, earlier)).answer
  }

  /** The answer after a wait, if the request asks for one. */
  function findLater(admitted: Exclude<EntryResult, ServedCall>, now: Answer, { res, arrived }: Incoming) {
    // the next request of a source comes after this one
    if (arrived !== undefined) return undefined
    if (admitted.kind === 'await') return awaits.findLater(admitted, now, res)
    const requested = mayWait(admitted) ? readWait(admitted) : undefined
    return requested && (() => runs.answerLater(requested, now, res))
  }

  async function receiveRefused(refused: RefusedRequest, { isDry }: { readonly isDry: boolean }) {
    const { request, requestId, hook: path, receivedAt } = refused
    const generation = parts.generation()
    const release = parts.acquire(generation)
    try {
      const admitted = await entry.readmitRequest({ ...request, path }, receivedAt, generation)
      if (admitted.kind !== 'delivery') return 'ran'
      if (isDry) return await arrivals.preview(admitted, generation, refused)
      noteAdmitted(admitted)
      const { answer, deliveryId } = await arrivals.answer(admitted, generation, {
        kind: 'refused',
        requestId,
        receivedAt,
      })
      refusals.noteRan(requestId, deliveryId)
      return answer.headers?.['idempotent-replay'] === 'true' ? 'repeated' : 'ran'
    } finally {
      release()
    }
  }

  function noteAdmitted({ hook, head, client }: AdmittedRequest): void {
    quarantine.noteAdmitted(toHookLabel(hook, head.path), client)
  }

  return { receive, receiveRefused }
}

type WaitingRequest = Extract<EntryResult, { kind: 'run' | 'delivery' }>

function mayWait(admitted: EntryResult): admitted is WaitingRequest {
  return admitted.kind === 'run' || (admitted.kind === 'delivery' && admitted.head.headers['prefer'] !== undefined)
}
