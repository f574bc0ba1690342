// The answers to requests of other methods than POST: the handshakes of senders. A GET that is a delivery goes the way of a POST.
import { Problem, type TraceEntry } from '../../core/model/problem.ts'
import type { HandshakeAnswer } from '../../core/model/verifier.ts'
import type { CheckedHead } from '../../core/mapping/delivery.ts'
import type { Answer } from '../../core/mapping/answer.ts'
import type { Hook, SignedMapping } from '../../core/mapping/hook.ts'
import { answerOrigin, toHandshakeAnswer } from '../proofs/verifiers/handshakes.ts'
import type { Admission } from './admission.ts'
import type { HandshakeSecrets } from './handshake-secrets.ts'

type OtherMethodParts = {
  readonly admission: Pick<Admission, 'refuseUnproved'>
  readonly handed: Pick<HandshakeSecrets, 'isArmed'>
}

/**
 * Returns the function that answers such a request: only a scheme whose handshake uses the method gives an answer, and OPTIONS is answered to the sender of
 * CloudEvents that has the hook token. Throws `method-not-allowed`, or the refusal of a failed proof if a scheme denies the handshake.
 */
export function createOtherMethods({ admission, handed }: OtherMethodParts) {
  return async function answerOtherMethod({ kind, signed }: Hook, head: CheckedHead): Promise<Answer> {
    const trace: TraceEntry[] = []
    for (const mapping of signed) {
      if (!mapping.verifier.handshakeMethods.includes(head.method)) continue
      const answer = await findAnswer(mapping, head)
      if (answer === undefined) continue
      if (typeof answer !== 'string') return toAnswer(answer)
      trace.push({ mappingId: mapping.id, matched: false, why: answer })
    }
    const allowed =
      head.method === 'OPTIONS' && head.token === 'valid' && kind !== 'unknown' && toHandshakeAnswer(answerOrigin(head))
    if (allowed) return toAnswer(allowed)
    if (trace.length === 0) throw new Problem('method-not-allowed', 'Hooks accept only POST.')
    try {
      return admission.refuseUnproved(head)
    } catch (error) {
      throw error instanceof Problem ? error.withTrace(trace) : error
    }
  }

  /** A text: why the handshake is denied. Undefined: the request is none of this mapping. */
  async function findAnswer(
    { identity, verifier }: SignedMapping,
    head: CheckedHead,
  ): Promise<HandshakeAnswer | string | undefined> {
    const request = { ...head, rawBody: new Uint8Array() }
    const armed = handed.isArmed(identity.secretsName)
    const unsigned = await verifier.handshake(request, { verified: false, armed })
    if (unsigned !== undefined) return unsigned.status === 401 ? 'the handshake has the wrong token' : unsigned
    if (verifier.isHandshakeHead(request) || !verifier.isClaimed(head.headers)) return undefined
    const verified = await verifier.verify(request)
    return verified.ok ? await verifier.handshake(request, { verified: true, armed }) : verified.reason
  }
}

export function toAnswer({ status, headers, body }: HandshakeAnswer): Answer {
  return { status, headers, body }
}
