// The table of senders: what each scheme proves, in words, and the settings that it requires.
import { metaHub, stravaHub } from '../src/plugins/senders/handshakes.ts'
import { Problem } from '../src/core/model/problem.ts'
import type { Verifier } from '../src/core/model/verifier.ts'
import { type VerifyInput, VerifySettings } from '../src/core/model/verify.ts'
import type { Scheme } from '../src/model/scheme.ts'
import { hasIdInBody } from '../src/core/mapping/sources.ts'
import { createVerifier } from '../src/gateway/proofs/verify.ts'
import { builtInSenders } from '../src/gateway/built-in.ts'

const { schemes, find: findSender } = builtInSenders

/** Sender, scheme, what it proves, how it treats a repeated request, the settings, and the confidence in its facts. */
export function toSenderRows(): string[][] {
  return schemes
    .toSorted((one, other) => (one.id < other.id ? -1 : 1))
    .map((scheme) => [
      `[${scheme.label ?? scheme.id}](${scheme.docs})`,
      `\`${scheme.id}\``,
      toProof(scheme),
      toRepeats(scheme),
      toNeeded(scheme),
      scheme.confidence === 'verified' ? 'checked' : 'uncertain',
    ])
}

function toProof(scheme: Scheme): string {
  switch (scheme.kind) {
    case 'hmac': {
      const template = scheme.template ?? scheme.timedTemplate ?? '{body}'
      const parts = `HMAC-${toHash(scheme.algorithm)} of ${toParts(template)}`
      if (scheme.timedTemplate !== undefined) return `${parts}, the time if its user wants it`
      return parts + toTime(scheme.timestamp?.in === 'body', scheme.toleranceSeconds)
    }
    case 'ed25519':
      return `Ed25519 of ${toParts(scheme.template)}${toTime(false, scheme.toleranceSeconds)}`
    case 'ecdsa':
      return `ECDSA of ${toParts(scheme.template)}${toTime(false, scheme.toleranceSeconds)}`
    case 'concat-hash':
      return `SHA-256 of ${toParts(`{secret}${scheme.template}`)}`
    case 'jwt':
      return `JSON Web Token (${scheme.algorithm})${scheme.bodyHashClaim === undefined ? '; not the body' : ' with the hash of the body'}`
    case 'token':
      return 'shared token in a header; not the body'
    case 'basic':
      return 'user and password; not the body'
    case 'client-state':
      return 'shared word in the body; nothing else'
    case 'code':
      return `${scheme.about}${toTime(false, scheme.toleranceSeconds)}`
  }
}

function toHash(algorithm = 'sha256'): string {
  return algorithm.toUpperCase()
}

const words: Record<string, string> = {
  secret: 'secret',
  id: 'id',
  timestamp: 'time',
  method: 'method',
  url: 'URL',
  decodedUrl: 'URL',
  form: 'form',
  body: 'body',
}

/** `v0:{timestamp}:{body}` → `time and body` */
function toParts(template: string): string {
  const parts = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => words[name] ?? name)
  const [last = '', ...before] = parts.toReversed()
  return before.length === 0 ? `the ${last}` : `${before.toReversed().join(', ')} and ${last}`
}

function toTime(isInBody: boolean, seconds: number | undefined): string {
  if (seconds === undefined) return ''
  const window = seconds <= 300 ? `± ${seconds} s` : `at most ${seconds} s old`
  return `${isInBody ? ', in which the time is' : ''}; ${window}`
}

/** How a repeat of a captured request is detected. The parts are independent: the id counts until the time expires, and after that too. */
export function toRepeats(scheme: Scheme): string {
  const byId = toRepeatsById(scheme)
  if (!isTimed(scheme)) {
    const isTimedAtWill = scheme.kind === 'hmac' && scheme.timedTemplate !== undefined
    return isTimedAtWill ? `${byId}; refused by time where the time is signed` : byId
  }
  return byId === 'not at all' ? 'refused by time' : `refused by time · ${byId}`
}

/** Whether every proof of a scheme expires. */
function isTimed(scheme: Scheme): boolean {
  if (scheme.kind === 'jwt') {
    const { maxAgeSeconds, requires, bodyHashClaim } = scheme
    return maxAgeSeconds !== undefined || requires?.includes('exp') === true || bodyHashClaim === undefined
  }
  return 'toleranceSeconds' in scheme && scheme.toleranceSeconds !== undefined
}

function toRepeatsById(scheme: Scheme): 'by signed id' | 'by signed text' | 'by unsigned id' | 'not at all' {
  if ('textIsId' in scheme && scheme.textIsId === true) return 'by signed text'
  const { covers } = toVerifier(Object.entries(toFull(scheme)))
  const sender = scheme.source === undefined ? undefined : findSender(scheme.source)
  if (covers.id || (covers.body && sender !== undefined && hasIdInBody(sender))) return 'by signed id'
  return sender?.deliveryId === undefined ? 'not at all' : 'by unsigned id'
}

/** A value for every setting that some scheme requires; a key has the form of its scheme. */
function toFull(scheme: Scheme): VerifyInput {
  const curve =
    'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g=='
  const point = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'
  const keys = { 'raw-hex': point, 'raw-base64': Buffer.from(point, 'hex').toString('base64'), 'spki-base64': curve }
  return {
    scheme: scheme.id,
    secret: scheme.kind === 'basic' ? 'user:password' : 'ab'.repeat(16),
    ...('keyForm' in scheme ? { publicKey: keys[scheme.keyForm] } : {}),
    publicUrl: 'https://gateway.example/hooks/x',
    header: 'x-named',
    webhookId: 'w',
    topicArn: 't',
    email: 'account@sender.example',
    audience: 'a',
    jwksUrl: 'https://keys.example/set',
  }
}

/** The required settings: each is left out once, to see whether the verifier still loads. */
function toNeeded(scheme: Scheme): string {
  const full = toFull(scheme)
  const keys = Object.keys(full).filter((key) => key !== 'scheme')
  if (!loads(Object.entries(full))) throw new Error(`${scheme.id} does not load with every setting`)
  const needed = keys.filter((key) => !loads(Object.entries(full).filter(([name]) => name !== key)))
  const shown = needed.map((key) => (scheme.kind === 'basic' ? `\`${key}\` as \`user:password\`` : `\`${key}\``))
  if (scheme.kind === 'jwt' && needed.includes('jwksUrl')) shown.push('or `publicKey`')
  // the public URL may replace the audience, so neither of them is required alone
  if (scheme.kind === 'jwt' && scheme.forAccount === true) shown.push('`audience`')
  if (scheme.handsOver === true) shown.push('nothing: it hands its secret over; or `secret`')
  if (scheme.handshakes?.some((handshake) => handshake === metaHub || handshake === stravaHub))
    shown.push('`verifyToken`')
  return shown.join(', ').replace(', or ', ' or ')
}

function loads(settings: readonly (readonly [string, unknown])[]): boolean {
  try {
    toVerifier(settings)
    return true
  } catch (error) {
    if (error instanceof Problem && error.code === 'config-invalid') return false
    throw error
  }
}

function toVerifier(settings: readonly (readonly [string, unknown])[]): Verifier {
  return createVerifier(VerifySettings.parse(Object.fromEntries(settings)), {
    senders: builtInSenders,
    fetch: async () => ({ ok: false, fault: 'gateway', reason: '' }),
    now: () => 0,
  })
}
