// Refuses a request: keeps it if the operator can correct the cause, says so to the listeners, and answers.
import type { IncomingMessage } from 'node:http'
import { toPrintableLine, takeStart } from '../../base/text.ts'
import { formatCommand } from '../../base/shell.ts'
import type { Log } from '../../base/log.ts'
import type { Problem, ProblemCode } from '../../core/model/problem.ts'
import { credentialHeaders } from '../../core/model/delivery.ts'
import type { Generation } from '../generation/generation.ts'
import { toHookLabel } from '../../core/mapping/hook.ts'
import { findSignature, listProofs } from '../proofs/verifiers/signature.ts'
import type { Clock } from '../../store/store.ts'
import { describeKeptReason, type Quarantine } from '../deliveries/refused/quarantine.ts'
import { describeTrace, isProofUnchecked } from '../deliveries/refused/reasons.ts'
import { type Answer, toRefusalAnswer } from '../../core/mapping/answer.ts'
import { type Admission, toHeaders } from './admission.ts'
import type { Incoming } from './entry.ts'
import { readHookName, toUrlPath } from './target.ts'
import { type Refusal, toRefusalFields } from './refusals.ts'

/** A refused request. `label`: see `toHookLabel`; empty outside the prefix of the hooks. */
export type RefusedHttpRequest = {
  readonly refusal: Refusal
  readonly problem: Problem
  readonly label: string
  readonly req: IncomingMessage
  readonly headers: Readonly<Record<string, string>>
  readonly generation: Generation
}
/** Called before a refused request is answered. */
export type OnRefused = (refused: RefusedHttpRequest) => void

/** The line of a refusal on the terminal of `hookloom dev`. */
export function describeRefusal({ refusal, generation }: Pick<RefusedHttpRequest, 'refusal' | 'generation'>): string {
  const { hook, path, status, code, error, requestId, trace } = refusal
  const { nearestHook, signature } = toRefusalFields(refusal, generation)
  const reasons = [
    ...(code === 'unauthorized' && !isProofUnchecked(trace) ? describeTrace(trace) : []),
    ...(nearestHook === null ? [] : [`Did it mean the hook "${nearestHook}"?`]),
    ...(signature === null ? [] : [`Perhaps: ${signature.why}.`]),
    `"${formatCommand`hookloom show ${requestId.slice(0, 8)}`}" explains it.`,
  ]
  return toPrintableLine(`${takeStart(hook ?? path, 80)} → ${status} ${code}: ${error} ${reasons.join(' ')}`)
}

/** A failure of the gateway is logged with its cause. Any other refusal says all in its problem. */
export function logInternalError(
  { problem, refusal }: Pick<RefusedHttpRequest, 'problem' | 'refusal'>,
  log: Log,
): void {
  if (problem.code !== 'internal-error') return
  log.error({ err: problem.cause, requestId: refusal.requestId }, 'a request failed inside the gateway')
}

type RefuserParts = {
  readonly admission: Pick<Admission, 'findCaller'>
  readonly quarantine: Pick<Quarantine, 'note'>
  readonly onRefused: OnRefused
  readonly clock: Clock
  readonly development: boolean
}

/** The refusals of a request whose proof is missing or not valid. */
const proofCodes: ReadonlySet<ProblemCode> = new Set(['unauthorized', 'rate-limited', 'proof-unavailable'])

/** Answers a refusal of the hook port. */
export type Refuser = (problem: Problem, incoming: Incoming, generation: Generation) => Answer

export function createRefuser({ admission, quarantine, onRefused, clock, development }: RefuserParts): Refuser {
  return (problem, { req, requestId, arrived, body }, generation) => {
    const { code, status, trace } = problem
    // the sender may read the names of fields of its own request in its answer; the list of refusals must not show them to the operator
    const error = !development && code === 'payload-invalid' ? describeKeptReason(problem) : problem.message
    const url = req.url ?? '/'
    const hook = readHookName(url, generation.config.hooks.path)
    const asked = hook === undefined ? undefined : generation.findHook(hook)
    const label = asked === undefined || hook === undefined ? '' : toHookLabel(asked, hook)
    const headers = toHeaders(req.rawHeaders)
    const signature =
      code === 'unauthorized' && isProofUnchecked(trace) ? findSignature(headers, generation.senders) : undefined
    const proofs = proofCodes.has(code)
      ? listProofs(headers, new Set([...credentialHeaders, ...(asked?.secretHeaders ?? [])]))
      : []
    const facts = {
      requestId,
      receivedAt: arrived?.at ?? clock(),
      hook,
      path: toUrlPath(url),
      ...admission.findCaller(req, generation),
      status,
      code,
      error,
      trace,
      ...(signature && { signature }),
      ...(proofs.length > 0 && { proofs }),
    }
    const raw = body && { method: req.method ?? '', url, rawHeaders: req.rawHeaders, client: facts.client, body }
    const whyNotKept =
      asked === undefined || raw === undefined
        ? 'it was refused before its body was read'
        : quarantine.note(facts, asked, raw)
    const refusal = { ...facts, isKept: whyNotKept === undefined, ...(whyNotKept !== undefined && { whyNotKept }) }
    onRefused({ refusal, problem, label, req, headers, generation })
    return toRefusalAnswer(problem, development)
  }
}
