// Schemes in code, written by integrators. A mistake in one must not let anybody in. They run in the gateway's main thread.
import { within } from '../../../base/time.ts'
import { z } from 'zod'
import type { ProblemRecord } from '../../../core/model/problem.ts'
import { toPrintableLine, takeStart } from '../../../base/text.ts'
import type { CodeScheme } from '../../../model/scheme.ts'
import type { DefinedVerifier, PinnedFetchResult, SenderContext } from '../../../model/proof.ts'
import type { Verified, Verifier, VerifyRequest } from '../../../core/model/verifier.ts'
import type { SentValue } from '../../../base/json.ts'
import { readPath } from '../../../core/model/path.ts'
import { markUseful } from './pinned-fetch.ts'
import {
  coversNothing,
  findTimeFault,
  type Proof,
  type ProofTools,
  readHeader,
  readJsonBody,
  refuseProof,
  toSettingProblem,
  toText,
} from './proof.ts'

/** The same limit as for a fetch of the built-in schemes: the sender waits for the result. */
const timeLimitMs = 5_000
const maxReasonChars = 300
const maxIdChars = 256

const Answer = z.union([
  z.object({
    ok: z.literal(true),
    id: z.string().min(1).max(maxIdChars).optional(),
    body: z.instanceof(Uint8Array).optional(),
  }),
  z.object({ ok: z.literal(false), fault: z.enum(['sender', 'gateway']), reason: z.string() }),
])

/** The row of a verifier in code, as a sender would have it. */
export function toCodeScheme({
  scheme,
  definition,
  describeThrown,
}: Extract<DefinedVerifier, { kind: 'sound' }>): CodeScheme {
  const { source } = definition
  return { kind: 'code', id: scheme, source, code: definition, describeThrown, docs: '', confidence: 'verified' }
}

export function createCodeProof(
  { id: scheme, code, describeThrown = () => 'an exception', toleranceSeconds: usual }: CodeScheme,
  { settings, secrets, fetch, now }: ProofTools,
): Proof {
  const fault = findSettingsFault()
  if (fault !== undefined) throw toSettingProblem(settings, fault)
  const { toleranceSeconds = usual } = settings
  const headers = code.headers.map((name) => name.toLowerCase())
  const secretHeaders = (code.secretHeaders ?? []).map((name) => name.toLowerCase())

  function findSettingsFault(): string | undefined {
    try {
      return code.check?.(settings)
    } catch (thrown) {
      return `cannot be checked: check() threw ${describeThrown(thrown)}.`
    }
  }

  async function prove(request: VerifyRequest, at = now()): Promise<Verified> {
    const fetched: PinnedFetchResult[] = []
    let body: SentValue | undefined
    const context: SenderContext = {
      secrets: secrets(),
      settings,
      now: at,
      async fetch(url, rule) {
        const result = await fetch(url, rule)
        fetched.push(result)
        return result
      },
      read: (...path) => toText(readPath((body ??= readJsonBody(request.rawBody) ?? null), path)),
      findTimeFault: (text, unit) => findTimeFault(text, { unit, now: at, toleranceSeconds }),
    }
    let answered: { readonly given: unknown } | undefined
    try {
      const answering = async () => ({ given: await code.verify(request, context) })
      answered = await within(timeLimitMs, answering())
    } catch (thrown) {
      // for example, `timingSafeEqual` throws for a signature of the wrong length: the proof is invalid
      return refuseProof(`The verifier "${scheme}" threw ${describeThrown(thrown)}.`)
    }
    if (answered === undefined)
      return gatewayFault(`The verifier "${scheme}" did not answer within ${timeLimitMs / 1000} s.`)
    const answer = Answer.safeParse(answered.given)
    if (!answer.success)
      return gatewayFault(
        `The verifier "${scheme}" must return { ok: true, id?, body? } or { ok: false, fault, reason }.`,
      )
    if (answer.data.ok) {
      fetched.forEach(markUseful)
      return answer.data
    }
    const { fault, reason } = answer.data
    const signs = [...headers, ...secretHeaders].flatMap((name) => readHeader(request.headers, name) ?? [])
    return { ok: false, fault, reason: redactReason(reason, [...secrets(), ...signs]) }
  }

  return {
    secretHeaders,
    covers: code.covers ?? { id: false, body: true },
    isClaimed: (given) => headers.length === 0 || headers.some((name) => Object.hasOwn(given, name)),
    verify: prove,
  }
}

/** Replaces a verifier that does not load: it refuses every request with 503, so that the sender repeats it. */
export function createBrokenVerifier(scheme: string, { detail }: ProblemRecord): Verifier {
  return {
    scheme,
    source: undefined,
    secretHeaders: [],
    handsOver: false,
    handshakeMethods: [],
    covers: coversNothing,
    acceptsEmpty: false,
    acceptsGet: false,
    isClaimed: () => true,
    verify: () => gatewayFault(detail),
    isHandshakeHead: () => false,
    handshake: () => undefined,
    explain: () => undefined,
  }
}

/** The scheme or its module is at fault: the request is refused with 503, so that the sender repeats it. */
function gatewayFault(reason: string): Verified {
  return { ok: false, fault: 'gateway', reason }
}

/** One line for the list of refusals, without secrets and signatures. */
function redactReason(reason: string, hidden: readonly string[]): string {
  const safe = hidden.reduce((text, secret) => (secret === '' ? text : text.replaceAll(secret, '…')), reason)
  return takeStart(toPrintableLine(safe), maxReasonChars)
}
