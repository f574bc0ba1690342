// A hash of the secret followed by the signed text: the older versions of HubSpot's signature.
import { createHash } from 'node:crypto'
import type { VerifyRequest } from '../../../core/model/verifier.ts'
import {
  isDigest,
  mismatch,
  refuseMissingHeader,
  requirePublicUrl,
  type Proof,
  type ProofTools,
  validProof,
  readHeader,
  refuseProof,
} from './proof.ts'
import type { ConcatHashScheme } from '../../../model/scheme.ts'
import { compileSignedText, readCoverage, describeSignedText, collectSignedPieces } from './signed.ts'
import { toPublicUrl } from './url.ts'

export function createConcatHashProof(scheme: ConcatHashScheme, { settings, secrets }: ProofTools): Proof {
  const { parts } = compileSignedText(scheme.template)
  const publicUrl = requirePublicUrl(settings, scheme.template)
  const readSignedPieces = (request: VerifyRequest): (string | Uint8Array)[] =>
    collectSignedPieces(parts, { request, timestamp: '', id: '', url: toPublicUrl(publicUrl, request.url) }) ?? []
  return {
    secretHeaders: [],
    covers: readCoverage(scheme.template),
    isClaimed: (headers) => Object.hasOwn(headers, scheme.header),
    verify(request) {
      const signature = readHeader(request.headers, scheme.header)
      if (signature === undefined) return refuseMissingHeader(scheme.header)
      const version = readHeader(request.headers, scheme.versionHeader) ?? scheme.version
      if (version !== scheme.version) return refuseProof('The signature has another version.')
      const pieces = readSignedPieces(request)
      const isValid = secrets().some((secret) => {
        const hash = createHash('sha256').update(secret)
        for (const piece of pieces) hash.update(piece)
        return isDigest(signature, hash.digest('hex'), 'hex')
      })
      return isValid ? validProof : mismatch
    },
    // the secret before this text is not shown
    explain: (request) => describeSignedText(readSignedPieces(request)),
  }
}
