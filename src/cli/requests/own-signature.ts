// Signs an operator's request as the sender of its mapping does.
import { assemble } from '../../reload/assemble.ts'
import type { Config } from '../../model/config.ts'
import { newId } from '../../base/id.ts'
import { toHandedSecretsFile } from '../../model/places.ts'
import { Problem } from '../../model/problem.ts'
import { createGeneration, type Generation } from '../../pipeline/generation.ts'
import { signRequest, stampPayload } from '../../pipeline/verifiers/sign.ts'
import { buildDelivery, toLocalHead } from '../../deliveries/delivery.ts'
import { createHandshakeSecrets } from '../../http/handshake-secrets.ts'
import type { RequestInput } from './input.ts'

type AddressedInput = RequestInput & { readonly path: string }

/** `withToken`: the hook token is sent too. `note`: why the request is sent unsigned. */
type SignedInput = AddressedInput & { readonly withToken: boolean; readonly note: string | undefined }

/**
 * The request stays unsigned if the mapping that matches it does not verify its sender. Throws `usage-invalid` with the reason if only the
 * sender can sign, unless the request already has a proof.
 */
export async function signAsSender(
  { dir, config }: { dir: string; config: Config },
  given: AddressedInput,
): Promise<SignedInput> {
  const { mappings, verifiers } = await assemble(dir, config)
  const generation = createGeneration({ config, mappings, transforms: new Map(), verifiers })
  const taker = findMapping(generation, given)
  const { verify } = taker?.mapping ?? {}
  if (taker?.verifier === undefined || verify === undefined) return { ...given, withToken: true, note: undefined }
  const now = Date.now()
  const [handed] = createHandshakeSecrets({ file: toHandedSecretsFile(dir), clock: Date.now }).find(
    taker.identity.secretsName,
  )
  const hasOwn = verify.secret !== undefined || verify.secrets !== undefined || handed === undefined
  const settings = hasOwn ? verify : { ...verify, secret: handed }
  const withToken = verify.also === 'token'
  const isJson = /\bjson\b/i.test(given.headers['content-type'] ?? '')
  const body = isJson ? JSON.stringify(stampPayload(settings, JSON.parse(given.body), now)) : given.body
  const url = `${config.hooks.path}/${given.path}`
  try {
    const toSign = { body: Buffer.from(body), now, method: 'POST', url, headers: given.headers }
    const proof = signRequest(settings, toSign, verifiers)
    return { ...given, headers: { ...proof, ...given.headers }, body, withToken, note: undefined }
  } catch (error) {
    const isSenders = error instanceof Problem && error.code === 'usage-invalid'
    if (!isSenders || !taker.verifier.isClaimed(given.headers)) throw error
    return { ...given, withToken, note: `The request is sent unsigned. ${error.message}` }
  }
}

/** The mapping that would match the request if every proof were valid; otherwise the first one that requires a proof. */
function findMapping(generation: Generation, { path, headers, body }: AddressedInput) {
  const hook = generation.hook(path)
  const [first] = hook.signed
  if (first === undefined) return undefined
  const verifiedBy = first.provenSender.source
  const head = toLocalHead(hook, { prefix: generation.config.hooks.path, path, headers, verifiedBy })
  const delivery = buildDelivery(head, Buffer.from(body), { hook, id: newId(), receivedAt: Date.now() })
  return hook.find(delivery).mapping ?? first
}
