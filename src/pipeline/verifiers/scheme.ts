// A scheme: how a sender proves its requests. The rows are in the table of senders.
import type { DigestEncoding, HmacAlgorithm, SecretEncoding, TimestampUnit } from '../../model/verify.ts'
import type { HandshakeName } from './handshakes.ts'

/** How a header carries signatures: one after a prefix, or a list of named entries of which any may match. */
export type Syntax =
  | { readonly prefix: string }
  | {
      readonly separator: ',' | ';' | ' '
      /** Between the name of an entry and its value. */
      readonly joint: '=' | ','
      /** The entries that count. Others, weaker or newer, are stepped over. */
      readonly field: string
    }

/** Where the time of signing is. `field`: an entry of the signature's list; `body`: read after the bytes are proven. */
type TimestampPlace =
  | { readonly in: 'header'; readonly name: string; readonly unit: TimestampUnit }
  | { readonly in: 'field'; readonly name: string; readonly unit: TimestampUnit }
  | { readonly in: 'body'; readonly path: string; readonly unit: TimestampUnit }

/**
 * Whether a repeated request carries the time of the first attempt. `docs` is the page, or the code, of the sender that says it.
 * `anew`: each attempt is signed with its own time. `never`: there is one attempt. `limited`: the sender refuses an older time than
 * this, or tells its receivers to, so its own attempts are not older. `first`: attempts follow for this long, and nothing says that
 * they have a time of their own. `unsaid`: attempts follow, and nothing says for how long.
 */
export type Retries = { readonly docs: string } & (
  | { readonly time: 'anew' | 'never' | 'unsaid' }
  | { readonly time: 'limited' | 'first'; readonly seconds: number }
)

type Common = {
  readonly id: string
  /** The row of `senders.ts` with its event types and delivery ids; undefined: nobody in particular. */
  readonly source: string | undefined
  /** The name that people read. Schemes outside of the table have none. */
  readonly label?: string
  readonly handshakes?: readonly HandshakeName[]
  /** A body of no bytes is a delivery. */
  readonly acceptsEmpty?: true
  /** Headers with a secret that come beside the proof. */
  readonly secretHeaders?: readonly string[]
  /** Bytes that its secret has at least, if the sender gives its users a shorter one than `minSecretBytes`. */
  readonly minSecretBytes?: number
  /** Every row whose proof has an end has one: its window must not refuse what the sender still sends. */
  readonly retries?: Retries
  /** The sender hands the secret over in its first request: it need not be in the config. */
  readonly handsOver?: true
  readonly docs: string
  /** `medium`: the documentation was contradictory or could not be held against a vector. */
  readonly confidence: 'verified' | 'medium'
}

/**
 * The sender signs no delivery id: what it signed, with the time, is the id. So a captured request counts once for as long as
 * deliveries are remembered, and not only until the time ends. Not for a time in seconds beside bodies that can be the same.
 */
type TextIsId = true

/** Absent: SHA-256, hex, the whole header, the raw body alone, a UTF-8 secret, no time. */
export type HmacScheme = Common & {
  readonly kind: 'hmac'
  readonly header: string
  /** More headers with signatures, any of which may match, as a sender that rotates its keys sends them. */
  readonly moreHeaders?: RegExp
  readonly algorithm?: HmacAlgorithm
  readonly encoding?: DigestEncoding
  readonly syntax?: Syntax
  /** See signed.ts for the placeholders. */
  readonly template?: string
  /** The header behind {id}. */
  readonly idHeader?: string
  readonly timestamp?: TimestampPlace
  /** Every row with a timestamp has one. */
  readonly toleranceSeconds?: number
  readonly secretEncoding?: SecretEncoding
  readonly secretPrefix?: string
  /** Other names of its headers, which count only when `header` is not there. */
  readonly alias?: { readonly header: string; readonly idHeader: string; readonly timestamp: string }
  /** The operator may name `header`, and a timestamp, which makes this the template. */
  readonly timedTemplate?: string
  /** The URL is tried with and without the port of its protocol. */
  readonly portVariants?: true
  readonly textIsId?: TextIsId
}

export type TokenScheme = Common & {
  readonly kind: 'token'
  /** Undefined: the operator names it. In `authorization`, the word Bearer before the token is optional. */
  readonly header: string | undefined
}

export type BasicScheme = Common & { readonly kind: 'basic' }

export type AsymmetricScheme = Common & {
  readonly kind: 'ed25519' | 'ecdsa'
  readonly header: string
  readonly encoding: 'hex' | 'base64'
  readonly syntax?: Syntax
  readonly keyForm: 'raw-hex' | 'raw-base64' | 'spki-base64'
  readonly keyPrefix?: string
  readonly template: string
  readonly idHeader?: string
  readonly timestamp: Extract<TimestampPlace, { in: 'header' }>
  readonly toleranceSeconds: number
  readonly textIsId?: TextIsId
}

export type X509Scheme = Common & {
  readonly kind: 'x509'
  readonly header: string
  readonly toleranceSeconds: number
  /** What is signed of the body: `fields`, by their names; `checksum`, a CRC-32, which another body can be made to fit. */
  readonly signs: 'fields' | 'checksum'
}

export type JwtScheme = Common & {
  readonly kind: 'jwt'
  readonly header: string
  /** Whether the word Bearer comes before the token. */
  readonly bearer: boolean
  readonly algorithm: 'RS256' | 'ES256' | 'HS256'
  readonly issuers?: readonly string[]
  readonly jwksUrl?: string
  /** The claim with the SHA-256 of the body. */
  readonly bodyHashClaim?: string
  /** Default: hex. The `=` at the end of base64 are optional. */
  readonly bodyHashEncoding?: DigestEncoding
  /** `sub` is the URL that the sender calls. It is checked if the mapping names `publicUrl`. */
  readonly subjectIsUrl?: true
  /** Age of `iat` at the most. Absent: `exp` ends a token, or five minutes if it has `iat` alone. */
  readonly maxAgeSeconds?: number
  readonly requires?: readonly ('exp' | 'iat')[]
  /** The mapping must name an audience (or `publicUrl`) and the e-mail of the service account. */
  readonly forAccount?: true
}

export type BodyHmacScheme = Common & {
  readonly kind: 'body-hmac'
  readonly form: 'mailgun' | 'adyen'
  readonly toleranceSeconds?: number
}

export type ConcatHashScheme = Common & {
  readonly kind: 'concat-hash'
  readonly header: string
  readonly versionHeader: string
  readonly version: string
  /** The secret comes first: {secret} is left out here. */
  readonly template: string
}

/** The sender repeats a value that only the operator and it know, in the body. */
export type ClientStateScheme = Common & {
  readonly kind: 'client-state'
  /** Top-level array each item of which carries the field; undefined: the payload itself does. */
  readonly list: string | undefined
  readonly field: string
}

export type Scheme =
  | HmacScheme
  | TokenScheme
  | BasicScheme
  | AsymmetricScheme
  | X509Scheme
  | JwtScheme
  | BodyHmacScheme
  | ConcatHashScheme
  | ClientStateScheme
