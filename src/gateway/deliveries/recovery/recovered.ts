// Makes a delivery from a request in the outbox of a sender: the same row, with the same key, as if the request had arrived.
import type { Delivery, DeliveryHead, SignedId } from '../../../core/model/delivery.ts'
import { Problem } from '../../../core/model/problem.ts'
import type { CompiledMapping } from '../../../core/mapping/compile.ts'
import type { Generation } from '../../generation/generation.ts'
import type { Hook, SignedMapping } from '../../../core/mapping/hook.ts'
import { readSignedId } from '../../proofs/check.ts'
import type { SentRequest } from '../../../model/outbox.ts'
import type { DedupeKey, NewDelivery } from '../../../store/records.ts'
import { buildDelivery, dropCredentials } from '../../../core/mapping/delivery.ts'
import { readDedupe, toRecoveredKey } from '../duplicates.ts'
import { toDeliveryRow, toPendingSettlement } from '../settlement.ts'
import { toWaitingAnswer } from '../answers.ts'

type RecoverTarget = {
  readonly generation: Generation
  /** The name of the hook of `mapping`. */
  readonly path: string
  /** The mapping with `recover`. */
  readonly mapping: CompiledMapping
}

/** What the outbox says of a request: whose it is, and its id. */
type Sent = { readonly sender: string; readonly id: string }

/** Headers of the connection, which are not part of the delivery. */
const hopHeaders = ['connection', 'content-encoding', 'content-length', 'host', 'transfer-encoding']

/**
 * Builds the delivery. Throws `body-too-large`, `body-invalid`, `media-type-unsupported` or `idempotency-key-invalid` if the hook would refuse
 * the request.
 */
export function buildRecoveredRow(
  request: SentRequest,
  target: RecoverTarget,
  { sent, id, receivedAt, sentAt }: { sent: Sent; id: string; receivedAt: number; sentAt: number | undefined },
): NewDelivery {
  const { generation } = target
  const { maxBodyBytes } = generation.findHook(target.path)
  if (request.body.byteLength > maxBodyBytes)
    throw new Problem(
      'body-too-large',
      `The body has ${request.body.byteLength} bytes, and the hook takes ${maxBodyBytes}.`,
    )
  const delivery = buildRecoveredDelivery(request, target, { id, receivedAt, sentAt })
  const settlement = toPendingSettlement(delivery, generation.id)
  const dedupe = readDedupe(delivery)?.key ?? toRecoveredKey(delivery, sent)
  return { ...toDeliveryRow(delivery, { settlement, answer: toWaitingAnswer(id, 'pending'), dedupe }), recovered: true }
}

/** The dedupe key of the request. Undefined if the hook would refuse it. */
export function findRecoveredKey(request: SentRequest, target: RecoverTarget, sent: Sent): DedupeKey | undefined {
  try {
    const delivery = buildRecoveredDelivery(request, target, { id: '', receivedAt: 0, sentAt: undefined })
    return readDedupe(delivery)?.key ?? toRecoveredKey(delivery, sent)
  } catch (error) {
    if (error instanceof Problem) return undefined
    throw error
  }
}

function buildRecoveredDelivery(
  request: SentRequest,
  target: RecoverTarget,
  { id, receivedAt, sentAt }: { id: string; receivedAt: number; sentAt: number | undefined },
): Delivery {
  const hook = target.generation.findHook(target.path)
  const head = buildHead(request, hook, target)
  const admitted = { ...head.admitted, sentAt }
  return buildDelivery({ ...head, admitted }, request.body, { hook, id, receivedAt })
}

/** The head that the request would have if it had arrived. The request counts as proved, because it comes from the API of the sender. */
function buildHead(request: SentRequest, hook: Hook, { generation, path, mapping }: RecoverTarget): DeliveryHead {
  const headers = dropCredentials(request.headers, hook.secretHeaders)
  for (const name of hopHeaders) delete headers[name]
  const { search, query } = readQuery(request.url)
  const proven = listProvenMappings(hook, mapping)
  const verify = mapping.mapping.verify
  return {
    method: 'POST',
    url: `${generation.config.hooks.path}/${path}${search}`,
    path,
    headers,
    query,
    verifiedBy: proven[0]?.provenSender.source,
    admitted: {
      token: verify === undefined || verify.also === 'token',
      signedFor: proven.flatMap(({ identity }) => identity.proves),
      signers: [...new Set(proven.map(({ identity }) => identity.signer))].toSorted(),
      signedId: findSignedId(proven, request),
    },
  }
}

/** The mappings of the hook that accept a signature of this sender: those with the same scheme, and with one of the secrets of `mapping`. */
function listProvenMappings(hook: Hook, { mapping: { verify } }: CompiledMapping): readonly SignedMapping[] {
  if (verify === undefined) return []
  const secrets = listSecrets(verify)
  return hook.signed.filter(({ mapping: { verify: other } }) => {
    if (other?.scheme !== verify.scheme) return false
    const others = listSecrets(other)
    return secrets.length === 0 ? others.length === 0 : secrets.some((secret) => others.includes(secret))
  })
}

function listSecrets({ secret, secrets }: { secret?: string | undefined; secrets?: string[] | undefined }): string[] {
  return secrets ?? (secret === undefined ? [] : [secret])
}

/** Finds the signed delivery id in the same way as `http/entry.ts`. GitLab signs its id in the header `webhook-id`. */
function findSignedId(proven: readonly SignedMapping[], { headers, body }: SentRequest): SignedId | undefined {
  for (const { identity, verifier, provenSender } of proven) {
    const signed = verifier.covers.id ? headers['webhook-id'] : undefined
    const id = readSignedId(provenSender.facts, verifier.covers, { ok: true, id: signed }, body)
    if (id !== undefined) return { signer: identity.signer, source: provenSender.source, id }
  }
  return undefined
}

function readQuery(url: string | undefined): { search: string; query: Record<string, string> } {
  const query: Record<string, string> = Object.create(null)
  const search = url === undefined || !URL.canParse(url) ? '' : new URL(url).search
  for (const [name, value] of new URLSearchParams(search)) query[name] = value
  return { search, query }
}
