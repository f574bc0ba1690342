// Signed requests that are changed on their way: no change verifies, except one that changes nothing that anybody reads.
import { VerifySettings } from '../../src/core/model/verify.ts'
import type { VerifyRequest, Verifier } from '../../src/core/model/verifier.ts'
import { builtInSenders } from '../../src/gateway/built-in.ts'
import { signRequest, stampPayload } from '../../src/gateway/proofs/verifiers/sign.ts'
import { createVerifier } from '../../src/gateway/proofs/verify.ts'
import type { Scheme } from '../../src/model/scheme.ts'
import { describeFault, findThrown, type Target } from './mutations.ts'

const known = { senders: builtInSenders }
const schemes: readonly Scheme[] = builtInSenders.schemes
/** Schemes that sign the body, with a key that the test can have. Monday's token covers no body. */
const overBody = schemes.filter(
  ({ kind, id, ...scheme }) =>
    (['hmac', 'concat-hash'].includes(kind) || ('algorithm' in scheme && scheme.algorithm === 'HS256')) &&
    id !== 'monday',
)
const at = 1_700_000_000_000
/** Both join the names and values of a form before they sign it, so some changes of a form are no change. */
const ofForms = new Set(['mandrill', 'twilio'])

type Signed = {
  readonly id: string
  readonly request: VerifyRequest
  readonly proof: Record<string, string>
  readonly verifier: Verifier
}

function sign({ id }: Scheme): Signed {
  const settings = VerifySettings.parse({ scheme: id, secret: 'abcdef01', publicUrl: 'https://x.example/hooks/x' })
  const given = {
    method: 'POST',
    url: '/hooks/x?a=1',
    headers: { 'content-type': 'application/json', 'klaviyo-timestamp': 'Tue, 14 Nov 2023 22:13:20 GMT' },
  }
  const payload = stampPayload(settings, { text: 'hello', data: { id: 5 } }, at, known)
  const rawBody = Buffer.from(ofForms.has(id) ? 'text=hello&a=b' : JSON.stringify(payload))
  const proof = signRequest(settings, { ...given, body: rawBody, now: at }, known)
  const fetch = () => Promise.reject(new Error('nothing is fetched'))
  const verifier = createVerifier(settings, { fetch, now: () => at, ...known })
  return { id, request: { ...given, headers: { ...given.headers, ...proof }, rawBody }, proof, verifier }
}

const pieces = [
  ',', ';', '=', ' ', '\t', 't=', 'v1=', 'v1,', 'sha256=', 'v0=', 'Bearer ', '0', '+', '-', '.', '"', '&', '%00', '%2B',
  '\u00e9', '\u0130', '\u212a', 'A', '\uFEFF', '{', '}', '1700000000', '1700000300000', '__proto__', '==', 'g',
] // prettier-ignore

/** The words of a proof, without what separates them. The case of hex digits does not matter. */
function listWords(text: string): Set<string> {
  return new Set(
    text
      .toLowerCase()
      .split(/[\s,;=\uFEFF]+/)
      .filter(Boolean),
  )
}

/** `verify`: gives a flawed twin. */
export function createProofTarget(
  verify = (verifier: Verifier, request: VerifyRequest) => verifier.verify(request),
): Target {
  const signed = overBody.map(sign)
  return {
    name: 'signed requests',
    cases: 6_000,
    async tryOne(chance) {
      const { id, request, proof, verifier } = chance.pick(signed)
      const body = request.rawBody.toString()
      const name = chance.below(4) === 0 ? undefined : chance.pick(Object.keys(proof))
      const sent = { ...request }
      if (name === undefined) sent.rawBody = Buffer.from(chance.mutate(body, pieces))
      else sent.headers = { ...request.headers, [name]: chance.mutate(proof[name] ?? '', pieces, 2).trim() }
      let isAccepted = false
      const thrown = await findThrown(
        async () => {
          verifier.isClaimed(sent.headers)
          isAccepted = (await verify(verifier, sent)).ok
        },
        { id, ...sent },
      )
      if (thrown !== undefined || !isAccepted) return thrown
      const isSame =
        name === undefined
          ? ofForms.has(id) || Buffer.compare(sent.rawBody, request.rawBody) === 0
          : [...listWords(proof[name] ?? '')].every((word) => listWords(sent.headers[name] ?? '').has(word))
      return isSame
        ? undefined
        : describeFault(`${id} accepts a changed request`, { ...sent, rawBody: sent.rawBody.toString() })
    },
  }
}
