// Schemes: how senders prove their requests. The scheme of a listed sender is a part of its row in the table of senders.
import type { DigestEncoding, HmacAlgorithm, SecretEncoding, TimestampUnit } from '../core/model/verify.ts'
import type { Handshake, SenderCode } from './proof.ts'
import type { SenderFacts } from '../core/model/sender.ts'

/** The form of a header with signatures: one after a prefix, or a list of named entries of which any may match. */
export type Syntax =
  /** `isList`: several, with a comma or a semicolon between them, as while the sender changes its secret, or in several lines of the header. */
  | { readonly prefix: string; readonly isList?: true }
  | {
      readonly separator: ',' | ';' | ' '
      /** The character between the name of an entry and its value. */
      readonly joint: '=' | ','
      /** The name of the entries that count. Entries with another name, such as those of other algorithms, are ignored. */
      readonly field: string
    }

/** The place of the signed time. `field`: an entry in the list of signatures. `body`: read after the bytes are proved. */
type TimestampPlace =
  | { readonly in: 'header'; readonly name: string; readonly unit: TimestampUnit }
  | { readonly in: 'field'; readonly name: string; readonly unit: TimestampUnit }
  | { readonly in: 'body'; readonly path: string; readonly unit: TimestampUnit }

/**
 * Whether a repeated request has the time of the first attempt. `docs`: the page or the code of the sender that says so.
 * `anew`: each attempt is signed with its own time. `never`: there is only one attempt. `limited`: the sender refuses older times than
 * this, or tells its receivers to, and documents no later attempt. `first`: the sender repeats a request for this long, and does not
 * say that each attempt has its own time; then its advice to refuse older ones counts less (Linear gives it, and repeats the same bytes for hours). `unsaid`:
 * the sender repeats a request, and does not say for how long.
 */
export type Retries = { readonly docs: string } & (
  | { readonly time: 'anew' | 'never' | 'unsaid' }
  | { readonly time: 'limited' | 'first'; readonly seconds: number }
)

type Common = {
  readonly id: string
  /** The name of the sender, whose row says where its requests have event and delivery id; undefined for a scheme outside the table. */
  readonly source: string | undefined
  /** The name that people read. Schemes outside the table have no such name. */
  readonly label?: string
  /** The requests by which the sender checks a URL. */
  readonly handshakes?: readonly Handshake[]
  /** True: a request with an empty body is a delivery. */
  readonly acceptsEmpty?: true
  /** Further headers with a secret, in addition to the headers of the proof. */
  readonly secretHeaders?: readonly string[]
  /** The minimum length of a secret in bytes, for a sender whose secrets are shorter than the usual minimum of 16 bytes. */
  readonly minSecretBytes?: number
  /** Set for each row with a tolerance or a maximum age, which must not refuse a request that the sender still repeats. */
  readonly retries?: Retries
  /** True: the sender gives the secret in a handshake, so the configuration needs no secret. */
  readonly handsOver?: true
  /** The page of the sender that documents the scheme. */
  readonly docs: string
  /** `medium`: the documentation is contradictory, or no published signature shows that it is right. */
  readonly confidence: 'verified' | 'medium'
}

/**
 * The sender signs no delivery id, so the signed text with its time is the id: a captured request counts once for as long as deliveries are
 * remembered, and not only until its time expires. It is not set if the time is in whole seconds and two bodies can be equal.
 */
type TextIsId = true

/** Defaults: SHA-256, hex, the whole header, only the raw body, a UTF-8 secret, no time. */
export type HmacScheme = Common & {
  readonly kind: 'hmac'
  /** The header with the signature. */
  readonly header: string
  /** More headers with signatures, for a sender that rotates its keys. Any signature may match. */
  readonly moreHeaders?: RegExp
  readonly algorithm?: HmacAlgorithm
  /** The encoding of the signature. */
  readonly encoding?: DigestEncoding
  /** What the header has besides the signature. */
  readonly syntax?: Syntax
  /** The signed text, made of {body}, {timestamp}, {id}, {method}, {url}, {decodedUrl}, {form}, {header:name} and fixed text. */
  readonly template?: string
  /** The header with the value of {id}. */
  readonly idHeader?: string
  /** The place of {timestamp}. */
  readonly timestamp?: TimestampPlace
  /** How old the signed time may be. It may be ahead of the clock by as much, but by five minutes at most. Every row with a timestamp sets it. */
  readonly toleranceSeconds?: number
  readonly secretEncoding?: SecretEncoding
  /** A text before the secret that is not a part of its bytes, such as `whsec_`. */
  readonly secretPrefix?: string
  /** A second set of names for the headers of the scheme. It counts only if `header` is absent. */
  readonly alias?: { readonly header: string; readonly idHeader: string; readonly timestamp: string }
  /** The template if the operator names a header with a timestamp. */
  readonly timedTemplate?: string
  /** The URL is tried with and without the port of its protocol. */
  readonly portVariants?: true
  readonly textIsId?: TextIsId
}

export type TokenScheme = Common & {
  readonly kind: 'token'
  /** The name of the header; undefined if the operator names it. In `authorization`, the word Bearer before the token is optional. */
  readonly header: string | undefined
}

export type BasicScheme = Common & { readonly kind: 'basic' }

export type AsymmetricScheme = Common & {
  /** `ecdsa`: on the curve P-256, with SHA-256. */
  readonly kind: 'ed25519' | 'ecdsa'
  readonly header: string
  readonly encoding: 'hex' | 'base64'
  readonly syntax?: Syntax
  /** The form of `verify.publicKey`. */
  readonly keyForm: 'raw-hex' | 'raw-base64' | 'spki-base64'
  /** A text before the key that is not a part of it. */
  readonly keyPrefix?: string
  readonly template: string
  readonly idHeader?: string
  readonly timestamp: Extract<TimestampPlace, { in: 'header' }>
  readonly toleranceSeconds: number
  readonly textIsId?: TextIsId
}

export type JwtScheme = Common & {
  readonly kind: 'jwt'
  readonly header: string
  /** Whether the word Bearer comes before the token. */
  readonly bearer: boolean
  readonly algorithm: 'RS256' | 'ES256' | 'HS256'
  /** The values that `iss` may have. */
  readonly issuers?: readonly string[]
  /** The URL of the keys of the sender. Without it, the mapping names one, or a public key. */
  readonly jwksUrl?: string
  /** The claim with the SHA-256 of the body. */
  readonly bodyHashClaim?: string
  /** Default: hex. The `=` signs at the end of base64 are optional. */
  readonly bodyHashEncoding?: DigestEncoding
  /** `sub` is the URL that the sender calls. It is checked if the mapping names `publicUrl`. */
  readonly subjectIsUrl?: true
  /** The largest age by `iat`. Default: a token ends at its `exp`, or after five minutes if it has only `iat`. */
  readonly maxAgeSeconds?: number
  /** The claims that each token has. */
  readonly requires?: readonly ('exp' | 'iat')[]
  /** The mapping must name an audience (or `publicUrl`) and the e-mail of the service account. */
  readonly forAccount?: true
}

export type ConcatHashScheme = Common & {
  readonly kind: 'concat-hash'
  readonly header: string
  /** A request whose header has another version is refused. */
  readonly versionHeader: string
  readonly version: string
  /** The template of the signed text, which follows the secret in the hash. */
  readonly template: string
}

/** The sender repeats in the body a value that only the operator and the sender know. */
export type ClientStateScheme = Common & {
  readonly kind: 'client-state'
  /** A top-level array whose items all have the field; undefined if the payload itself has it. */
  readonly list: string | undefined
  /** The field with the value. */
  readonly field: string
}

/** A proof in own code, which runs in the gateway's main thread. */
export type CodeScheme = Common & {
  readonly kind: 'code'
  readonly code: SenderCode
  /** What the code proves, for the table of senders. */
  readonly about?: string
  /** As in `HmacScheme`, for `findTimeFault`. */
  readonly toleranceSeconds?: number
  /** The encoding of the secrets, for their minimum length. */
  readonly secretEncoding?: SecretEncoding
  /** Set by the loader of the code. Names an exception and its place without a text that may quote a request: `a TypeError at acme.ts:12`. */
  readonly describeThrown?: (thrown: unknown) => string
}

export type Scheme =
  | HmacScheme
  | TokenScheme
  | BasicScheme
  | AsymmetricScheme
  | JwtScheme
  | ConcatHashScheme
  | ClientStateScheme
  | CodeScheme

type RowOf<Each> = Each extends Scheme ? Omit<Each, 'id' | 'source' | 'label' | 'docs'> : never

/** How a sender proves its requests, with the handshakes that belong to the proof. `id` is the name in `verify.scheme`. */
export type SchemeRow = RowOf<Scheme> & {
  /** Default: the name of the sender. */
  readonly id?: string
  /** Added to the label of a sender that has several schemes. */
  readonly variant?: string
}

/** `docs`: the page that documents the scheme. `schemes`: of a sender that signs in several ways. */
type SchemesOfSender =
  | { readonly docs?: never; readonly scheme?: never; readonly schemes?: never }
  | { readonly docs: string; readonly scheme: SchemeRow; readonly schemes?: never }
  | {
      readonly docs: string
      readonly scheme?: never
      readonly schemes: readonly (SchemeRow & { readonly id: string })[]
    }

/** A sender, as `defineSender` declares it. */
export type SenderDefinition = SenderFacts & SchemesOfSender
