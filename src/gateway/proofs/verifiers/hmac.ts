// HMAC in all its forms. It is computed over the raw bytes, before they are parsed.
import { createHmac, type KeyObject } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import { isGzip } from '../../../base/http.ts'
import type { Verified, VerifyRequest } from '../../../core/model/verifier.ts'
import {
  readBodyTimestamp,
  findTimeFault,
  toSettingProblem,
  mismatch,
  refuseMissingHeader,
  requirePublicUrl,
  type Proof,
  type ProofTools,
  validProof,
  acceptProof,
  readHeader,
  refuseProof,
  isDigest,
} from './proof.ts'
import {
  readEntries,
  readSignatures,
  compileSignedText,
  type SignedParts,
  readCoverage,
  describeSignedText,
  collectSignedPieces,
  toTextId,
} from './signed.ts'
import { createKeyring, parseSecretKey } from './keys.ts'
import type { HmacScheme, Syntax } from '../../../model/scheme.ts'
import { toFormText } from './form.ts'
import { toPortVariants, toPublicUrl } from './url.ts'

const openingBrace = 0x7b

const noForm = refuseProof('The body is not a form of at most 1,000 fields, and the URL does not have its hash.')

/** Throws `config-invalid` if a required setting is missing. */
export function createHmacProof(scheme: HmacScheme, { settings, secrets, now }: ProofTools): Proof {
  const { algorithm = 'sha256', encoding = 'hex', syntax, timestamp, alias, moreHeaders } = scheme
  const { parts, unknown } = compileSignedText(scheme.template ?? '{body}')
  if (unknown !== undefined) throw toSettingProblem(settings, `has an unknown placeholder in its template: ${unknown}.`)
  const publicUrl = requirePublicUrl(settings, scheme.template ?? '')
  const signsForm = scheme.template?.includes('{form}') === true
  // a handshake signs words for anybody, with the key for bodies: so a delivery must not be such a word
  const signsWords = scheme.handshakes?.some((handshake) => handshake.signsWords) === true
  const toleranceSeconds = chooseTolerance(scheme, settings)
  const keys = createKeyring(secrets, (secret) =>
    parseSecretKey(secret, settings, { encoding: scheme.secretEncoding, prefix: scheme.secretPrefix }),
  )

  /** The second set of header names counts only if the first header is absent: it must not replace an invalid signature. */
  function chooseHeaderNames(headers: VerifyRequest['headers']): {
    header: string
    id: string | undefined
    time: string
  } {
    const time = timestamp?.in === 'header' ? timestamp.name : ''
    if (alias === undefined || Object.hasOwn(headers, scheme.header) || !Object.hasOwn(headers, alias.header)) {
      return { header: scheme.header, id: scheme.idHeader, time }
    }
    return { header: alias.header, id: alias.idHeader, time: alias.timestamp }
  }

  function readPresentedSignatures(headers: VerifyRequest['headers'], header: string): readonly string[] {
    const first = readSignatures(readHeader(headers, header) ?? '', syntax)
    if (moreHeaders === undefined) return first
    const others = Object.keys(headers).filter((name) => name !== header && moreHeaders.test(name))
    return [...first, ...others.flatMap((name) => readSignatures(readHeader(headers, name) ?? '', syntax))]
  }

  /** The parts of the signed text, or the reason why a part is missing. */
  function readSignedParts(request: VerifyRequest): SignedParts | Verified {
    const names = chooseHeaderNames(request.headers)
    let time = ''
    if (timestamp?.in === 'header') time = readHeader(request.headers, names.time) ?? ''
    if (timestamp?.in === 'field' && isList(syntax)) {
      time = readEntries(readHeader(request.headers, names.header) ?? '', syntax, timestamp.name)[0] ?? ''
    }
    if (time === '' && timestamp !== undefined && timestamp.in !== 'body') {
      return refuseProof(`The signed time is missing: ${timestamp.in} ${names.time || timestamp.name}.`)
    }
    const id = names.id === undefined ? '' : readHeader(request.headers, names.id)
    if (names.id !== undefined && (id === undefined || id === '')) return refuseMissingHeader(names.id)
    const values = { request, timestamp: time, id: id ?? '', url: toPublicUrl(publicUrl, request.url) }
    if (!signsForm) return values
    const form = toFormText(request, values.url)
    return form === undefined ? noForm : { ...values, form }
  }

  function findStampFault(text: string, at: number): string | undefined {
    if (timestamp === undefined || toleranceSeconds === undefined) return undefined
    return findTimeFault(text, { unit: timestamp.unit, now: at, toleranceSeconds })
  }

  function isSignatureValid(values: SignedParts, presented: readonly string[], key: KeyObject): boolean {
    const urls = scheme.portVariants === true ? toPortVariants(values.url) : [values.url]
    return urls.some((url) => {
      const pieces = collectSignedPieces(parts, { ...values, url })
      if (pieces === undefined) return false
      const hmac = createHmac(algorithm, key)
      for (const piece of pieces) hmac.update(piece)
      const digest = hmac.digest(encoding)
      return presented.some((signature) => isDigest(signature, digest, encoding))
    })
  }

  return {
    secretHeaders: scheme.header === 'authorization' ? ['authorization'] : [],
    covers: readCoverage(scheme.template ?? '{body}', scheme.textIsId),
    isClaimed: (headers) => readPresentedSignatures(headers, chooseHeaderNames(headers).header).length > 0,
    verify(request, at = now()) {
      const live = keys()
      if (live.length === 0) return refuseProof('The sender has not sent its secret yet.')
      if (signsWords && request.rawBody[0] !== openingBrace) return refuseProof('The body is not a JSON object.')
      const presented = readPresentedSignatures(request.headers, chooseHeaderNames(request.headers).header)
      if (presented.length === 0) return refuseMissingHeader(`${scheme.header} with a signature`)
      const values = readSignedParts(request)
      if ('ok' in values) return values
      const early = timestamp?.in === 'body' ? undefined : findStampFault(values.timestamp, at)
      if (early !== undefined) return refuseProof(early)
      const isSigned = (parts: SignedParts) => live.some((key) => isSignatureValid(parts, presented, key))
      if (!isSigned(values)) {
        if (settings.decompressed !== true || !isGzip(request.rawBody)) return mismatch
        const plain = decompress(request)
        if (plain === undefined) return refuseProof('The body is not complete gzip data of at most 1 MiB.')
        if (!isSigned({ ...values, request: plain })) return mismatch
      }
      const late = timestamp?.in === 'body' ? findStampFault(readBodyTimestamp(request, timestamp.path), at) : undefined
      if (late !== undefined) return refuseProof(late)
      if (scheme.textIsId === true) return acceptProof(toTextId(collectSignedPieces(parts, values) ?? []))
      return scheme.idHeader === undefined ? validProof : acceptProof(values.id)
    },
    explain(sent) {
      const isOpened = settings.decompressed === true && isGzip(sent.rawBody)
      const values = readSignedParts((isOpened ? decompress(sent) : undefined) ?? sent)
      if ('ok' in values) return undefined
      const pieces = collectSignedPieces(parts, values)
      return pieces && describeSignedText(pieces)
    },
  }
}

/** A stranger may send a bomb: it is stopped at this size, and only one is open at a time. */
const maxDecompressedBytes = 1_048_576

/** The request with its body before compression. Undefined if the body cannot be decompressed. */
function decompress(request: VerifyRequest): VerifyRequest | undefined {
  try {
    return { ...request, rawBody: gunzipSync(request.rawBody, { maxOutputLength: maxDecompressedBytes }) }
  } catch {
    return undefined
  }
}

function chooseTolerance(scheme: HmacScheme, settings: ProofTools['settings']): number | undefined {
  if (settings.toleranceSeconds !== undefined && scheme.timestamp === undefined) {
    throw toSettingProblem(settings, 'does not sign a time, so verify.toleranceSeconds has no effect. Remove it.')
  }
  return settings.toleranceSeconds ?? scheme.toleranceSeconds
}

function isList(syntax: Syntax | undefined): syntax is Exclude<Syntax, { prefix: string }> {
  return syntax !== undefined && 'separator' in syntax
}
