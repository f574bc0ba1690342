// A verifier proves the sender of a request. It reads raw bytes and headers, and no input from a sender makes it throw.
import type { ProblemRecord } from './problem.ts'
import type { JsonObject } from '../base/json.ts'
import type { TimestampUnit, VerifySettings } from './config/verify.ts'

/** A request whose sender must be verified. */
export type VerifyRequest = {
  /** The method of the request: `POST`, except in some handshakes. */
  readonly method: string
  /** Path and query as received. */
  readonly url: string
  /** The headers by lower-case name, credentials and signatures among them. */
  readonly headers: Readonly<Record<string, string>>
  /** The body as received, before it is inflated or parsed. */
  readonly rawBody: Uint8Array
}
export type RequestHead = Omit<VerifyRequest, 'rawBody'>

/**
 * `id` is the delivery id, if the proof covers one: then only it identifies the delivery, whatever other headers say. `reason` is one
 * sentence for the operator, without a secret, a signature or a payload. A fault of the gateway, such as a certificate that cannot be
 * fetched, is answered with 503, because many senders never repeat a request after a 401.
 */
export type Verified =
  | { readonly ok: true; readonly id?: string | undefined }
  | { readonly ok: false; readonly fault: 'sender' | 'gateway'; readonly reason: string }

/**
 * The parts of a proved request that only the sender can set. `id`: a delivery id, which `verify` returns. `body`: every byte of
 * the body, and so the delivery id in it.
 */
export type Coverage = { readonly id: boolean; readonly body: boolean }

/** An answer in the shape that the sender expects. It is sent unchanged, and no delivery is created. */
export type HandshakeAnswer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** The secret that the sender sent. It is stored, and the verifier uses it from now on. */
  readonly handedSecret?: string
}

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

/** `verified`: the proof of this request is valid. `armed`: the operator allowed one new secret in the last ten minutes, and none has come since. */
export type HandshakeContext = { readonly verified: boolean; readonly armed: boolean }

export interface Verifier {
  readonly scheme: string
  /** The name of the sender; undefined for a proof that is not specific to a sender. */
  readonly source: string | undefined
  /** Headers with a secret. No delivery keeps them. */
  readonly secretHeaders: readonly string[]
  /** Whether the sender gives a secret in a handshake. */
  readonly handsOver: boolean
  /** The methods of the handshakes of the scheme, besides POST. */
  readonly handshakeMethods: readonly string[]
  /** Whether an empty body is a delivery. */
  readonly acceptsEmpty: boolean
  /** Whether a GET is a delivery, without a body. */
  readonly acceptsGet: boolean
  readonly covers: Coverage
  /** Whether the headers have a proof of this scheme. Always true for a proof in the body. */
  isClaimed(headers: RequestHead['headers']): boolean
  /** `at`: the time that signed times are compared with, in milliseconds since the epoch. Default: now. */
  verify(request: VerifyRequest, at?: number): Verified | Promise<Verified>
  /** Whether this may be a handshake without a proof, so that its body is read. */
  isHandshakeHead(head: RequestHead): boolean
  /** Called before `verify` if `isHandshakeHead`, and again after a valid proof. Undefined: the request is not a handshake. */
  handshake(
    request: VerifyRequest,
    context: HandshakeContext,
  ): HandshakeAnswer | undefined | Promise<HandshakeAnswer | undefined>
  /** The text that this scheme signs, for `hookloom verify --explain`. It shows the payload. */
  explain(request: VerifyRequest): string | undefined
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
   * distinguish a captured request from a new one. An exception counts as an invalid proof (401). Another return value, or none
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
