// Guesses from the headers of a refused request how its sender signs: as a known sender, or with a form of HMAC. The guess is for the operator,
// and decides nothing.
import type { DigestEncoding, HmacAlgorithm, TimestampUnit, VerifyInput } from '../../../core/model/verify.ts'
import { Problem } from '../../../core/model/problem.ts'
import type { SenderTable } from '../senders.ts'
import { createVerifier, offlineTools } from '../verify.ts'

type Headers = Readonly<Record<string, string>>
type TimeHeader = { readonly header: string; readonly unit: TimestampUnit }

/** `fields`: several values in one header, such as `t=…,v1=…`, which `generic-hmac` cannot read. A `Signature` never has the value of a header. */
export type Signature =
  | { readonly kind: 'sender'; readonly source: string }
  | {
      readonly kind: 'hmac'
      readonly header: string
      readonly prefix: string
      readonly algorithm: HmacAlgorithm
      readonly encoding: DigestEncoding
      readonly time: TimeHeader | undefined
      /** True: the body is compressed with gzip, and the sender may have signed it before. */
      readonly isCompressed: boolean
    }
  | { readonly kind: 'fields'; readonly header: string }

/** A hint for people. `config`: a text to paste into the configuration. */
export type SignatureHint = { readonly why: string; readonly next: string; readonly config: string | null }

/** A stranger sends the headers, so only a few short ones are read. */
const maxHeaders = 60
const maxNameChars = 64
const maxValueChars = 512
const readSome = (headers: Headers) => Object.entries(headers).slice(0, maxHeaders)

/** Headers that look like a signature by name or value, but contain none, or one that is not for a webhook. */
const otherHeaders =
  /^(cookie|digest|content-|repr-|want-|etag|if-|sec-|proxy-|x-amz-content-|x-forwarded-|traceparent)/
const signatureName = /sign|hmac|hash|digest|sha\d|(^|-)sig(-|$)/
const signaturePrefix = /^(hmac|sha-?\d|sig|v\d)/i

export function findSignature(headers: Headers, senders: SenderTable): Signature | undefined {
  const known = senders.recognise({ headers })?.facts.name
  if (known !== undefined && senders.schemes.some(({ source }) => source === known))
    return { kind: 'sender', source: known }
  let found: Signature | undefined
  for (const [name, value] of readSome(headers)) {
    if (name.length > maxNameChars || value.length > maxValueChars || otherHeaders.test(name)) continue
    const read = readDigest(name, value) ?? readFields(name, value)
    // the strongest of several signatures: some senders send one for each algorithm
    if (read !== undefined && rank(read) > rank(found)) found = read
  }
  if (found?.kind !== 'hmac') return found
  return { ...found, time: findTime(headers), isCompressed: headers['content-encoding']?.toLowerCase() === 'gzip' }
}

/** A header with a part of a proof. */
export type ShownProof = { readonly name: string; readonly value: string }

const maxProofs = 4
/** At most this many characters of a signature, and a third of them: enough for a comparison, and not the secret that may come in its place. */
const shownChars = 24

/** The headers in which a signature and its time came, cut. `secret`: headers that are left out. */
export function listProofs(headers: Headers, secret: ReadonlySet<string>): ShownProof[] {
  const shown = readSome(headers).flatMap(([name, value]): ShownProof[] => {
    if (name.length > maxNameChars || otherHeaders.test(name) || secret.has(name)) return []
    if (readTimeUnit(name, value) !== undefined) return [{ name, value }]
    if (!signatureName.test(name)) return []
    const length = `${value.length} characters`
    const isForm = value.length <= maxValueChars && (readDigest(name, value) ?? readFields(name, value)) !== undefined
    return [
      {
        name,
        value: isForm
          ? `${value.slice(0, Math.min(shownChars, value.length / 3))}… (${length})`
          : `${length}, in no usual form`,
      },
    ]
  })
  return shown.slice(0, maxProofs)
}

const algorithms: readonly HmacAlgorithm[] = ['sha1', 'sha256', 'sha384', 'sha512']

function rank(signature: Signature | undefined): number {
  if (signature === undefined) return -1
  return signature.kind === 'hmac' ? 1 + algorithms.indexOf(signature.algorithm) : 0
}

/** The sizes of the digests in bytes, in the order of `algorithms`. */
const digestBytes = [20, 32, 48, 64]

const signatureForm = /^((?:[a-z][\w-]{0,19}[=: ] ?)?)([\w+/-]{27,128}={0,2})$/i

/** A digest, or several, with or without a word before it. */
function readDigest(header: string, value: string): Extract<Signature, { kind: 'hmac' }> | undefined {
  // while the sender changes its secret, several signatures of one form
  const [first = '', ...others] = value.split(/[,;] ?/)
  const [, prefix = '', digest = ''] = signatureForm.exec(first) ?? []
  if (others.some((other) => signatureForm.exec(other)?.[1] !== prefix)) return undefined
  if (!(header === 'authorization' ? /^(hmac|sha-?\d)/i.test(prefix) : isNamed(header, prefix))) return undefined
  for (const encoding of ['hex', 'base64', 'base64url'] as const) {
    const bytes = Buffer.from(digest, encoding)
    const algorithm = algorithms[digestBytes.indexOf(bytes.byteLength)]
    const isSame = bytes.toString(encoding) === (encoding === 'hex' ? digest.toLowerCase() : digest)
    if (algorithm !== undefined && isSame)
      return { kind: 'hmac', header, prefix, algorithm, encoding, time: undefined, isCompressed: false }
  }
  return undefined
}

const isNamed = (header: string, prefix: string) => signatureName.test(header) || signaturePrefix.test(prefix)

function readFields(header: string, value: string): Signature | undefined {
  const isList = /^[a-z]\w{0,19}=[^,;]{1,200}[,;] ?[a-z]\w{0,19}=/i.test(value)
  return isList && signatureName.test(header) ? { kind: 'fields', header } : undefined
}

const timeName = /time|date|(^|-)ts$/
const timeForms: readonly (readonly [RegExp, TimestampUnit])[] = [
  [/^\d{10}$/, 's'],
  [/^\d{13}$/, 'ms'],
  [/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/, 'iso8601'],
]

function readTimeUnit(name: string, value: string): TimestampUnit | undefined {
  if (!timeName.test(name) || name.length > maxNameChars || value.length > 40) return undefined
  return timeForms.find(([form]) => form.test(value))?.[1]
}

function findTime(headers: Headers): TimeHeader | undefined {
  for (const [header, value] of readSome(headers)) {
    const unit = readTimeUnit(header, value)
    if (unit !== undefined) return { header, unit }
  }
  return undefined
}

/**
 * The steps after which a hook verifies this signature. `hook`: its name. `mapping`: the id of a mapping that takes its requests and verifies
 * nothing. `ids`: those of all mappings, which a new mapping cannot have.
 */
export function buildSignatureHint(
  signature: Signature,
  {
    hook,
    mapping,
    ids = [],
    senders,
  }: {
    readonly hook: string
    readonly senders: SenderTable
    readonly mapping: string | undefined
    readonly ids?: readonly string[]
  },
): SignatureHint {
  const page = 'the page "Signed senders"'
  if (signature.kind === 'fields') {
    return {
      why: `${signature.header} looks like a signature with several fields, and no mapping of this hook verifies it`,
      next: `"generic-hmac" cannot read such a header. See ${page}, which explains how to verify it in code (hooks/verifiers).`,
      config: null,
    }
  }
  const name = /^[\w./-]{1,64}$/.test(hook) ? hook : '<hook>'
  const word = (signature.kind === 'sender' ? signature.source : name).toUpperCase().replaceAll(/[^A-Z\d]+/g, '_')
  const variable = `${/^[A-Z]/.test(word) ? '' : 'HOOK_'}${word}_SECRET`
  const label = signature.kind === 'sender' ? (senders.find(signature.source)?.label ?? signature.source) : 'the sender'
  const verify = chooseVerify(signature, `\${${variable}}`, senders)
  const why =
    signature.kind === 'sender'
      ? `the headers are those of ${label}, and no mapping of this hook verifies its proof`
      : `${signature.header} looks like HMAC-${signature.algorithm.toUpperCase()} in ${signature.encoding}${signature.prefix === '' ? '' : ` after ${JSON.stringify(signature.prefix)}`}, and no mapping of this hook verifies it`
  if (verify === undefined) return { why, next: `Its scheme needs more than a secret: see ${page}.`, config: null }
  const secret = `Put ${variable}=<the secret that you and ${label} share> into .env`
  const next =
    mapping === undefined
      ? `${secret}, and this mapping into hooks.mappings.`
      : `${secret}, and this into the mapping ${JSON.stringify(mapping)}. The hook token does not open it any more.`
  const time = signature.kind === 'hmac' ? signature.time : undefined
  return { why, next: time === undefined ? next : `${next} ${describeTime(time)}`, config: render(verify) }

  function render(settings: VerifyInput): string {
    const text = `"verify": ${renderObject(settings)}`
    if (mapping !== undefined) return text
    // a sender of the table is its own source; `match.source` names any other one
    const own = name.split('/').at(-1) ?? name
    const isNew = signature.kind === 'hmac' && senders.find(own) === undefined && own !== '<hook>'
    const match = { path: name, ...(isNew ? { source: own } : {}) }
    const id = name === '<hook>' ? '' : `"id": ${JSON.stringify(chooseFreeId(own, ids))}, `
    return `{ ${id}"match": ${renderObject(match)},\n  ${text},\n  "messageTemplate": "{{payload}}" }`
  }
}

function chooseFreeId(wanted: string, ids: readonly string[]): string {
  let id = wanted
  for (let count = 2; ids.includes(id); count += 1) id = `${wanted}-${count}`
  return id
}

function renderObject(object: object): string {
  const entries = Object.entries(object).map(([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)}`)
  return `{ ${entries.join(', ')} }`
}

const describeTime = ({ header, unit }: TimeHeader) =>
  `If the sender signs the time in ${header} too, add what its documentation says to "verify", such as "template": "{timestamp}.{body}", "timestamp": { "header": ${JSON.stringify(header)}, "unit": "${unit}" }.`

/** The `verify` section for this signature; undefined if no scheme of the sender works with a secret alone. */
function chooseVerify(
  signature: Exclude<Signature, { kind: 'fields' }>,
  secret: string,
  senders: SenderTable,
): VerifyInput | undefined {
  if (signature.kind === 'hmac') {
    const { header, prefix, algorithm, encoding, isCompressed } = signature
    return {
      scheme: 'generic-hmac',
      secret,
      header,
      ...(prefix === '' ? {} : { prefix }),
      ...(algorithm === 'sha256' ? {} : { algorithm }),
      ...(encoding === 'hex' ? {} : { encoding }),
      ...(isCompressed ? { decompressed: true } : {}),
    }
  }
  const scheme = senders.schemes.find(({ id, source }) => source === signature.source && needsOnlySecret(id, senders))
  return scheme && { scheme: scheme.id, secret }
}

function needsOnlySecret(scheme: string, senders: SenderTable): boolean {
  try {
    createVerifier({ scheme, secret: 'x'.repeat(64) }, { ...offlineTools, senders })
    return true
  } catch (error) {
    if (error instanceof Problem) return false
    throw error
  }
}
