// What proofs are made of: handshakes, fetches of keys, and proofs in code.
import type { JsonObject } from '../base/json.ts'
import type { TimestampUnit, VerifySettings } from '../core/model/verify.ts'
import type { ProblemRecord } from '../core/model/problem.ts'
import type { Coverage, RequestHead, Verified, VerifyRequest } from '../core/model/verifier.ts'

/**
 * The answer to a handshake, for `toHandshakeAnswer`. `text` and the values of `json` may come from the request: they are sent back only if they
 * are numbers or plain texts of at most 1,024 characters; otherwise the request is no handshake. `status`: an answer without a body; 401 counts as a
 * failed proof.
 */
export type HandshakeReply =
  | { readonly text: unknown }
  | { readonly json: Readonly<Record<string, unknown>> }
  | {
      readonly status: 200 | 204 | 401 | 503
      readonly headers?: Readonly<Record<string, string>>
      /** As in `HandshakeAnswer`. */
      readonly handedSecret?: string
    }

/** The information that a handshake gets besides the request. */
export type HandshakeTools = {
  /** The section `verify` of the mapping. */
  readonly settings: VerifySettings
  readonly secrets: () => readonly string[]
  readonly fetch: PinnedFetch
  /** As in `HandshakeContext`: the operator allowed a new secret. */
  readonly armed: boolean
  /** The fields of the body, if it is a JSON object; otherwise none. */
  readonly readFields: () => JsonObject
}

/** A request by which a sender checks a URL. */
export type Handshake = {
  readonly method: 'POST' | 'GET' | 'HEAD' | 'OPTIONS'
  /** True: the handshake has the proof of the scheme, and is answered only if the proof is valid. */
  readonly signed: boolean
  /** Only for unsigned POSTs: whether the head may belong to a handshake. */
  readonly isHandshakeHead?: (head: RequestHead) => boolean
  /** True: the answer signs a word of the request with the secret. Then only a JSON object is a signed body. */
  readonly signsWords?: true
  /** Undefined: the request is not this handshake. */
  readonly answer: (
    request: VerifyRequest,
    tools: HandshakeTools,
  ) => HandshakeReply | undefined | Promise<HandshakeReply | undefined>
}

export type PinRule = {
  /** Must match the host name of the parsed URL. */
  readonly host: RegExp
  /** Must match the path of the parsed URL. */
  readonly path?: RegExp
  /** An older answer is fetched again. With 0, no answer is kept. */
  readonly maxAgeMs: number
}

/** Why a fetch failed. `sender`: the URL is not allowed or does not exist. `gateway`: it could not be reached. */
export type PinnedFetchResult =
  | { readonly ok: true; readonly body: string }
  | { readonly ok: false; readonly fault: 'sender' | 'gateway'; readonly reason: string }

/** Sends a GET to a URL that a request or the operator names, but only to hosts that the scheme allows. */
export type PinnedFetch = (url: string, rule: PinRule) => Promise<PinnedFetchResult>

/** The information that a verifier gets besides the request. */
export type VerifierContext = {
  /** The secrets of the mapping, newest first. */
  readonly secrets: readonly string[]
  /** The section `verify` of the mapping. */
  readonly settings: VerifySettings
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** The information that the code of a sender gets besides the request. */
export type SenderContext = VerifierContext & {
  readonly fetch: PinnedFetch
  /** The text or the number at a path of a JSON body, read as the delivery reads it: `read('items', 0, 'id')`. Empty if there is none. */
  readonly read: (...path: readonly (string | number)[]) => string
  /** Why a signed time is refused, by the tolerance of the mapping or of the scheme. Undefined if it is not. */
  readonly findTimeFault: (text: string, unit: TimestampUnit) => string | undefined
}

/** The proof of a sender in own code. The fields are those of `VerifierDefinition`. */
export type SenderCode = Omit<VerifierDefinition, 'scheme' | 'source' | 'verify'> & {
  /** The parts of the request that the proof covers. Default: the body. */
  readonly covers?: Coverage
  /** Why `verify` of a mapping cannot be used, as the rest of a sentence: `needs verify.topicArn: …`. It is reported when it is loaded. */
  readonly check?: (settings: VerifySettings) => string | undefined
  verify(request: VerifyRequest, context: SenderContext): Verified | Promise<Verified>
  /** Of a sender that encrypts: the payload that it would send for this JSON, so that `hookloom send` can send it. `sign` gets the request with it. */
  seal?(json: string, context: VerifierContext): object
}

/**
 * A scheme in code, for senders that no row of the table can describe. It runs in the gateway's main thread before the body is trusted, so
 * an endless loop blocks the gateway.
 */
export type VerifierDefinition = {
  /** The name for `verify.scheme`: that of its file. It cannot replace a built-in scheme. */
  readonly scheme: string
  /** A known sender: its event types and delivery ids are used. Default: the scheme. */
  readonly source?: string
  /** Only requests with one of these headers are checked. If the list is empty, every request of the path is checked. */
  readonly headers: readonly string[]
  /** Headers with a secret. Templates, transforms and stored rows do not see them. */
  readonly secretHeaders?: readonly string[]
  /** The minimum length of a secret, in bytes of text. Default: 16. Lower it only for a sender whose secrets are shorter. */
  readonly minSecretBytes?: number
  /**
   * Checks the raw bytes. Return the delivery id as `id` if the proof covers it and it is not in the body: an unsigned header does not
   * distinguish a captured request from a new one. Of a sender that encrypts, return as `body` what it encrypted: the delivery has it in place of
   * what was sent, in the same media type, and under the same limit. An exception counts as an invalid proof (401). Another return value, or none
   * after 5 s, is a fault of the gateway (503), and the sender repeats the request.
   */
  verify(request: VerifyRequest, context: VerifierContext): Verified | Promise<Verified>
  /** The headers of a proof, so that `hookloom send` can sign like the sender. `request.headers` has all other headers. */
  sign?(request: VerifyRequest, context: VerifierContext): Readonly<Record<string, string>>
}

/** A scheme in code, after the attempt to load its module. `broken`: the module is missing or does not load, so the scheme accepts no request. */
export type DefinedVerifier =
  | {
      readonly kind: 'sound'
      readonly scheme: string
      readonly definition: VerifierDefinition
      /** Hash of its code. */
      readonly hash: string
      /** Names an exception and its place without a text that may quote a request: `a TypeError at acme.ts:12`. */
      describeThrown(thrown: unknown): string
    }
  | { readonly kind: 'broken'; readonly scheme: string; readonly problem: ProblemRecord }
