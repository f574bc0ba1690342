// Refuses a request: counts, lists and logs the refusal for the operator, keeps the request if the operator can correct the cause, and answers.
import { toPrintableLine, takeStart } from '../base/text.ts'
import { formatCommand } from '../base/shell.ts'
import { recordRefusal } from './spans.ts'
import type { Log, Meter } from '../model/log.ts'
import type { Problem } from '../model/problem.ts'
import type { Generation } from '../pipeline/generation.ts'
import { toHookLabel } from '../pipeline/hook.ts'
import { findSignature } from '../pipeline/verifiers/signature.ts'
import type { Clock } from '../store/store.ts'
import { describeKeptReason, type Quarantine } from '../deliveries/refused/quarantine.ts'
import { describeTrace, isProofUnchecked } from '../deliveries/refused/reasons.ts'
import type { SenderWatch } from '../deliveries/senders/watch.ts'
import { type Answer, toRefusalAnswer } from '../pipeline/answer.ts'
import { type Admission, toHeaders } from './admission.ts'
import type { Incoming } from './entry.ts'
import { readHookName, toUrlPath } from './target.ts'
import { type Refusal, type RefusalLog, type Refusals, toRefusalFields } from './refusals.ts'

/** The line of a refusal on the terminal of `hookloom dev`. */
function describeRefusal(refusal: Refusal, generation: Generation): string {
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

type RefuserParts = {
  readonly admission: Pick<Admission, 'findCaller'>
  readonly refusals: Refusals
  readonly refusalLog: RefusalLog
  readonly quarantine: Quarantine
  readonly senders: Pick<SenderWatch, 'noteRefused'>
  readonly clock: Clock
  readonly development: boolean
  readonly meter: Meter
  readonly log: Log
}

/** Returns the function that answers every refusal of the hook port. */
export function createRefuser(parts: RefuserParts) {
  const { clock, development } = parts

  return function answerRefusal(problem: Problem, { req, requestId, body }: Incoming, generation: Generation): Answer {
    const { code, status, trace } = problem
    // the sender may read the names of fields of its own request in its answer; the list of refusals must not show them to the operator
    const error = !development && code === 'payload-invalid' ? describeKeptReason(problem) : problem.message
    const url = req.url ?? '/'
    const hook = readHookName(url, generation.config.hooks.path)
    const label = hook === undefined ? '' : toHookLabel(generation.findHook(hook), hook)
    parts.meter('refusals', { code, hook: label })
    recordRefusal(problem, { requestId, method: req.method, hook: label, traceparent: req.headers['traceparent'] })
    const headers = toHeaders(req.rawHeaders)
    const signature =
      code === 'unauthorized' && isProofUnchecked(trace) ? findSignature(headers, generation.senders) : undefined
    const facts = {
      requestId,
      receivedAt: clock(),
      hook,
      path: toUrlPath(url),
      ...parts.admission.findCaller(req, generation),
      status,
      code,
      error,
      trace,
      ...(signature && { signature }),
    }
    const raw = body && { method: req.method ?? '', url, rawHeaders: req.rawHeaders, client: facts.client, body }
    const isKept =
      hook !== undefined && raw !== undefined && parts.quarantine.note(facts, generation.findHook(hook), raw)
    parts.refusals.add({ ...facts, isKept })
    parts.senders.noteRefused(facts, headers, generation)
    if (!development) parts.refusalLog.count(facts)
    else parts.log.info({}, describeRefusal({ ...facts, isKept }, generation))
    if (code === 'internal-error')
      parts.log.error({ err: problem.cause, requestId }, 'a request failed inside the gateway')
    return toRefusalAnswer(problem, development)
  }
}
