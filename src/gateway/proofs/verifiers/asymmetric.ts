// Ed25519 and ECDSA: the sender signs with a key that only it has.
import { verify } from 'node:crypto'
import {
  findTimeFault,
  mismatch,
  refuseMissingHeader,
  requireSetting,
  type Proof,
  type ProofTools,
  validProof,
  acceptProof,
  readHeader,
  refuseProof,
} from './proof.ts'
import {
  readSignatures,
  compileSignedText,
  readCoverage,
  describeSignedText,
  collectSignedPieces,
  toTextId,
} from './signed.ts'
import { parsePublicKey } from './keys.ts'
import type { AsymmetricScheme } from '../../../model/scheme.ts'
import type { VerifyRequest } from '../../../core/model/verifier.ts'

export function createAsymmetricProof(scheme: AsymmetricScheme, { settings, now }: ProofTools): Proof {
  const key = parsePublicKey(requireSetting(settings, 'publicKey', 'the public key of the sender'), settings, scheme)
  const { parts } = compileSignedText(scheme.template)
  const toleranceSeconds = settings.toleranceSeconds ?? scheme.toleranceSeconds
  const { timestamp, idHeader } = scheme
  const read = (request: VerifyRequest, name: string | undefined): string =>
    (name === undefined ? undefined : readHeader(request.headers, name)) ?? ''
  const readSignedPieces = (request: VerifyRequest): (string | Uint8Array)[] | undefined =>
    collectSignedPieces(parts, {
      request,
      timestamp: read(request, timestamp.name),
      id: read(request, idHeader),
      url: '',
    })

  return {
    secretHeaders: [],
    covers: readCoverage(scheme.template, scheme.textIsId),
    isClaimed: (headers) => readSignatures(readHeader(headers, scheme.header) ?? '', scheme.syntax).length > 0,
    verify(request, at = now()) {
      const signatures = readSignatures(read(request, scheme.header), scheme.syntax)
      if (signatures.length === 0) return refuseMissingHeader(`${scheme.header} with a signature`)
      if (read(request, timestamp.name) === '') return refuseMissingHeader(timestamp.name)
      if (idHeader !== undefined && read(request, idHeader) === '') return refuseMissingHeader(idHeader)
      const timeFault = findTimeFault(read(request, timestamp.name), {
        unit: timestamp.unit,
        now: at,
        toleranceSeconds,
      })
      if (timeFault !== undefined) return refuseProof(timeFault)
      const pieces = readSignedPieces(request) ?? []
      const signed = Buffer.concat(pieces.map((piece) => Buffer.from(piece)))
      const isValid = signatures.some((text) => {
        const signature = Buffer.from(text, scheme.encoding)
        // decoders ignore invalid digits
        if (signature.toString(scheme.encoding) !== (scheme.encoding === 'hex' ? text.toLowerCase() : text))
          return false
        return verify(scheme.kind === 'ed25519' ? null : 'sha256', signed, key, signature)
      })
      if (!isValid) return mismatch
      if (scheme.textIsId === true) return acceptProof(toTextId(pieces))
      return idHeader === undefined ? validProof : acceptProof(read(request, idHeader))
    },
    explain(request) {
      const pieces = readSignedPieces(request)
      return pieces && describeSignedText(pieces)
    },
  }
}
