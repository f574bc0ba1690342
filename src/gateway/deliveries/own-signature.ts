// Signs a request of an operator in place of the sender of its mapping.
import { newId } from '../../base/id.ts'
import { stringify, tryParseSentJson } from '../../base/sent-json.ts'
import { urlSecretHeader } from '../../core/model/delivery.ts'
import { Problem } from '../../core/model/problem.ts'
import type { Generation } from '../generation/generation.ts'
import { signRequest, stampPayload } from '../proofs/verifiers/sign.ts'
import { buildDelivery, toLocalHead } from '../../core/mapping/delivery.ts'

/** `path`: the name of the hook. `headers`: lower-case names, with a content type. `fixed`: headers that the new proof must not replace. */
type OwnRequest = {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly fixed?: Readonly<Record<string, string>>
  readonly body: string
}

/** `path` ends with the secret if the sender has it in the URL. `withToken`: whether the hook token is sent too. `note`: the reason why the request is sent unsigned. */
type SignedRequest = Pick<OwnRequest, 'path' | 'headers' | 'body'> & {
  readonly withToken: boolean
  readonly note: string | undefined
}

/**
 * Signs the request, unless its mapping does not verify the sender. `readHandedSecrets`: the secrets that senders gave in handshakes, by the
 * `secretsName` of a mapping. If only the sender can sign, the request keeps the proof that it has; without one, throws `usage-invalid`.
 */
export function signAsSender(
  generation: Generation,
  readHandedSecrets: (secretsName: string) => readonly string[],
  { fixed, ...given }: OwnRequest,
): SignedRequest {
  const taker = findLikelyMapping(generation, given)
  const { verify } = taker?.mapping ?? {}
  if (taker?.verifier === undefined || verify === undefined) return { ...given, withToken: true, note: undefined }
  const now = Date.now()
  const [secret] = readHandedSecrets(taker.identity.secretsName)
  const hasOwn = verify.secret !== undefined || verify.secrets !== undefined || secret === undefined
  const settings = hasOwn ? verify : { ...verify, secret }
  const withToken = verify.also === 'token'
  const isJson = /\bjson\b/i.test(given.headers['content-type'] ?? '')
  const payload = isJson ? tryParseSentJson(given.body) : undefined
  const stamped = payload === undefined ? undefined : stampPayload(settings, payload, now, generation)
  const body = stamped === payload ? given.body : stringify(stamped)
  const url = `${generation.config.hooks.path}/${given.path}`
  try {
    const toSign = { body: Buffer.from(body), now, method: 'POST', url, headers: given.headers }
    const { [urlSecretHeader]: urlSecret, ...proof } = signRequest(settings, toSign, generation)
    const path = urlSecret === undefined ? given.path : `${given.path}/${urlSecret}`
    // the proof of a recorded request is too old, and perhaps made with another secret
    return { ...given, path, headers: { ...given.headers, ...proof, ...fixed }, body, withToken, note: undefined }
  } catch (error) {
    const canOnlySenderSign = error instanceof Problem && error.code === 'usage-invalid'
    if (!canOnlySenderSign || !taker.verifier.isClaimed(given.headers)) throw error
    return { ...given, withToken, note: `The request is sent unsigned. ${error.message}` }
  }
}

/** The mapping that would match the request if every proof were valid; otherwise the first one that requires a proof. */
function findLikelyMapping(generation: Generation, { path, headers, body }: OwnRequest) {
  const hook = generation.findHook(path)
  const [first] = hook.signed
  if (first === undefined) return undefined
  const verifiedBy = first.provenSender.source
  const head = toLocalHead(hook, { prefix: generation.config.hooks.path, path, headers, verifiedBy })
  const delivery = buildDelivery(head, Buffer.from(body), { hook, id: newId(), receivedAt: Date.now() })
  return hook.find(delivery).mapping ?? first
}
