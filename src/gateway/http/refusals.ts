// The last refusals, in memory, so that the operator can find the reasons. In development, the refused requests are kept too.
import type { RefusalRecord } from '../deliveries/refused/quarantine.ts'
import { findReason } from '../deliveries/refused/reasons.ts'
import { findNearest, formatQuantity, takeStart } from '../../base/text.ts'
import type { Log } from '../../base/log.ts'
import { normalizeHookName } from '../../core/model/mapping-rules.ts'
import type { ProblemCode } from '../../core/model/problem.ts'
import { credentialHeaders, urlSecretHeader } from '../../core/model/delivery.ts'
import type { VerifyRequest } from '../../core/model/verifier.ts'
import type { Generation } from '../generation/generation.ts'
import { buildSignatureHint, type Signature } from '../proofs/verifiers/signature.ts'
import type { RefusalFields } from '../../model/api/refusals.ts'

/**
 * A refusal for the operator. Its sender sees only `requestId`, `status`, `code` and `error` in the answer. In production, `error` hides
 * names in an invalid payload that the answer shows.
 */
export type Refusal = RefusalRecord & {
  /** Whether the request is kept, sealed, so that `hookloom retry --refused` can run it. */
  readonly isKept: boolean
  readonly whyNotKept?: string | undefined
  /** The id of the delivery that the request became, or repeats, when it was retried. */
  readonly ranAs?: string | undefined
}

/** The request without the credentials of the gateway. A credential header stays if it is the proof of a scheme of this hook; a secret of the URL never stays. */
export function removeGatewayCredentials(
  { method, url, headers }: Omit<VerifyRequest, 'rawBody'>,
  secretHeaders: ReadonlySet<string>,
  rawBody: Uint8Array,
): VerifyRequest {
  const shown = Object.entries(headers).filter(
    ([name]) => (secretHeaders.has(name) && name !== urlSecretHeader) || !credentialHeaders.has(name),
  )
  return { method, url, headers: Object.fromEntries(shown), rawBody }
}

const maxEntries = 500
/** The maximum number of characters. A request may name a hook with up to 16 kB. */
const maxNameChars = 200

const maxRequests = 50
const maxBytes = 4 * 1024 * 1024

export class Refusals {
  readonly #entries: Refusal[] = []
  /** The requests, oldest first. They are noted before their outcome is known, and forgotten if they are not refused. */
  readonly #requests = new Map<string, VerifyRequest>()
  #bytes = 0
  #added = 0

  /** Requests are kept in development, for `hookloom verify --explain`. In production, no payload is kept here. */
  readonly keepsRequests: boolean

  constructor(keepsRequests: boolean) {
    this.keepsRequests = keepsRequests
  }

  add(refusal: Refusal): void {
    const { hook, path } = refusal
    this.#entries.push({ ...refusal, hook: hook && takeStart(hook, maxNameChars), path: takeStart(path, maxNameChars) })
    if (this.#entries.length > maxEntries) this.#entries.shift()
    this.#added += 1
  }

  /** Notes the delivery that a retried request became, or repeats. */
  noteRan(requestId: string, ranAs: string): void {
    const at = this.#entries.findLastIndex((entry) => entry.requestId === requestId)
    const entry = this.#entries[at]
    if (entry !== undefined) this.#entries[at] = { ...entry, ranAs }
  }

  /** Newest last. */
  list(): readonly Refusal[] {
    return this.#entries
  }

  /** The number of refusals since the start, including the forgotten ones. */
  count(): number {
    return this.#added
  }

  /** Keeps a request until newer ones need its place. */
  note(requestId: string, request: VerifyRequest): void {
    this.#requests.set(requestId, request)
    this.#bytes += request.rawBody.byteLength
    for (const oldest of this.#requests.keys()) {
      if (this.#requests.size <= maxRequests && this.#bytes <= maxBytes) return
      this.forget(oldest)
    }
  }

  forget(requestId: string): void {
    this.#bytes -= this.#requests.get(requestId)?.rawBody.byteLength ?? 0
    this.#requests.delete(requestId)
  }

  findRequest(requestId: string): VerifyRequest | undefined {
    return this.#requests.get(requestId)
  }
}

const everyMs = 60_000

/** The part of a log line about senders that were set up for OpenClaw, after the number of their requests. */
const openClawHeader =
  'only the header x-openclaw-token, which is not read: let the sender use "Authorization: Bearer <token>" or "x-service-token: <token>"'

export type RefusalLog = {
  count(refusal: Pick<Refusal, 'code' | 'credential'>): void
  /** Logs the refusals that were counted since the last lines. */
  stop(): void
}

/** One line a minute for each kind of refusal: strangers must not be able to fill the disk with log lines. */
export function createRefusalLog(log: Log): RefusalLog {
  const counts = new Map<ProblemCode, { refusals: number; openclaw: number }>()
  let timer: NodeJS.Timeout | undefined

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    for (const [code, { refusals, openclaw }] of counts) {
      const requests = formatQuantity(refusals, 'request was', 'requests were')
      log.info(
        { code, refusals },
        `${requests} refused within a minute: ${code}. ${openclaw === 0 ? '' : `${openclaw} of them had ${openClawHeader}. `}"hookloom list --refused" shows the reasons.`,
      )
    }
    counts.clear()
  }

  return {
    count({ code, credential }) {
      const { refusals, openclaw } = counts.get(code) ?? { refusals: 0, openclaw: 0 }
      const isOpenClaw = code === 'unauthorized' && credential === 'openclaw-header'
      counts.set(code, { refusals: refusals + 1, openclaw: openclaw + (isOpenClaw ? 1 : 0) })
      timer ??= setTimeout(flush, everyMs).unref()
    },
    stop: flush,
  }
}

/**
 * A refusal as the operator sees it: for an unknown name with the hook that was probably meant, and with a mapping that could verify its
 * signature. Both are computed when the refusal is shown: a flood of refusals must stay cheap.
 */
export function toRefusalFields(refusal: Refusal, generation: Generation): RefusalFields {
  const { signature, proofs = [], ...fields } = refusal
  const { hook, status } = refusal
  const names = [
    'wake',
    'agent',
    ...generation.mappings.flatMap(({ match }) => normalizeHookName(match.path ?? '') || []),
  ]
  const isUnknown = hook !== undefined && (status === 401 || status === 404) && !names.includes(hook)
  const nearestHook = (isUnknown ? findNearest(hook, names) : undefined) ?? null
  const hint = signature === undefined || hook === undefined ? null : findSignatureHint(signature, hook, generation)
  const signed = hook === undefined ? [] : generation.findHook(hook).signed
  const expects = [...new Set(signed.map(({ verifier }) => verifier.scheme))]
  const facts = { reason: findReason(refusal), nearestHook, signature: hint, isStranger: isStranger(refusal) }
  return { ...fields, ...facts, proofs, expects }
}

/** The hint changes no mapping without a path, because such a mapping serves many hooks. */
function findSignatureHint(signature: Signature, hook: string, generation: Generation) {
  const { mappings: own, signed } = generation.findHook(hook)
  const live = signed.find(({ mapping, provenSender }) =>
    signature.kind === 'sender'
      ? provenSender.source === signature.source
      : mapping.verify?.header?.toLowerCase() === signature.header,
  )
  if (live !== undefined) {
    const why = `the mapping ${JSON.stringify(live.id)} of this hook verifies such a request now`
    return { why, next: 'Let the sender send it again: what a hook verifies is kept if it is refused.', config: null }
  }
  const open = own.find(({ verifier, match }) => !verifier && match.path !== undefined)
  const { mappings, senders } = generation
  return buildSignatureHint(signature, { hook, mapping: open?.id, ids: mappings.map(({ id }) => id), senders })
}

/** Whether a request had no valid hook token, and its trace names no mapping. The trace of a 401 names each mapping of the hook that has `verify`. */
export function isStranger({ credential, trace }: Pick<Refusal, 'credential' | 'trace'>): boolean {
  return credential !== 'hook-token' && trace.length === 0
}

/** The kept request, with its body in base64. Null if no body was read, or if the request is no longer kept. */
export function toRefusedRequest(request: VerifyRequest | undefined): object | null {
  if (request === undefined) return null
  const { method, url, headers, rawBody } = request
  return { method, url, headers, body: Buffer.from(rawBody).toString('base64') }
}
