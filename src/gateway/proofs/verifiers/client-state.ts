// The sender repeats in the body a value that the operator knows. There is no signature, only this shared value.
import { isJsonObject } from '../../../base/json.ts'
import {
  readField,
  readJsonBody,
  createSecretSet,
  coversNothing,
  type Proof,
  type ProofTools,
  validProof,
  refuseProof,
} from './proof.ts'
import type { ClientStateScheme } from '../../../model/scheme.ts'

export function createClientStateProof(scheme: ClientStateScheme, { secrets }: ProofTools): Proof {
  const isSecret = createSecretSet(secrets())
  return {
    secretHeaders: [],
    covers: coversNothing,
    isClaimed: () => true,
    verify(request) {
      const body = readJsonBody(request.rawBody)
      if (!isJsonObject(body)) return refuseProof('The body is not a JSON object.')
      const list = scheme.list === undefined ? [body] : Object.hasOwn(body, scheme.list) ? body[scheme.list] : undefined
      if (!Array.isArray(list) || list.length === 0) return refuseProof(`The body has no list "${scheme.list ?? ''}".`)
      // every item: one genuine notification must not carry forged ones
      return list.every((item) => isSecret(readField(item, scheme.field)))
        ? validProof
        : refuseProof(`The field "${scheme.field}" is missing or wrong.`)
    },
  }
}
