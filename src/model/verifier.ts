// What proves who sent a request. A verifier reads raw bytes and headers; it throws for nothing that a sender can send.
import type { ProblemRecord } from './problem.ts'
import type { VerifySettings } from './verify.ts'

/** Header names are lower-case; `url` is path and query as they came. */
export type VerifyRequest = {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly rawBody: Uint8Array
}
export type RequestHead = Omit<VerifyRequest, 'rawBody'>

/**
 * `id` is the delivery id, where the proof covers one: the delivery is recognised by it alone, whatever other headers say.
 * `reason` is one sentence for the operator, without a secret, a signature or a payload. A fault of the gateway (a
 * certificate that cannot be fetched) deserves a 503: many senders never repeat what was answered with 401.
 */
export type Verified =
  | { readonly ok: true; readonly id?: string | undefined }
  | { readonly ok: false; readonly fault: 'sender' | 'gateway'; readonly reason: string }

/**
 * What nobody but the sender can change of a proved request. `id`: a delivery id, which `verify` returns. `body`: every byte of
 * the body, and so the delivery id in it.
 */
export type Coverage = { readonly id: boolean; readonly body: boolean }

/** An answer in the sender's own shape, sent as it stands; no delivery is made. */
export type HandshakeAnswer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** The secret that the sender handed over: to be kept, and given to the verifier from now on. */
  readonly handedSecret?: string
}

/**
 * `verified`: this request's proof held. `armed`: the operator opened the window for a secret in the last ten minutes.
 */
export type HandshakeContext = { readonly verified: boolean; readonly armed: boolean }

export interface Verifier {
  readonly scheme: string
  /** Name of the sender; undefined where the scheme belongs to nobody in particular. */
  readonly source: string | undefined
  /** Headers that carry a secret: no delivery may keep them. */
  readonly secretHeaders: readonly string[]
  /** Whether its sender hands a secret over in a handshake. */
  readonly handsOver: boolean
  /** Methods besides POST with which a handshake comes. */
  readonly handshakeMethods: readonly string[]
  /** `text`: text/plain counts as JSON. `empty`: a body of no bytes is a delivery. */
  readonly accepts: { readonly text: boolean; readonly empty: boolean }
  readonly covers: Coverage
  /** Whether the headers show a proof of this scheme. A proof inside the body shows in no header: then always. */
  isClaimed(headers: RequestHead['headers']): boolean
  verify(request: VerifyRequest): Verified | Promise<Verified>
  /** Whether this may be a handshake that carries no proof, so that its body is worth reading. */
  isGreeting(head: RequestHead): boolean
  /** To be asked once before `verify` for a greeting, and once after a proof that held. Undefined: no handshake. */
  handshake(
    request: VerifyRequest,
    context: HandshakeContext,
  ): HandshakeAnswer | undefined | Promise<HandshakeAnswer | undefined>
  /** The text that this scheme signs, for `hookloom verify --explain`: it shows the payload. */
  explain(request: VerifyRequest): string | undefined
}

export type PinRule = {
  /** Holds for the host name of the parsed URL. */
  readonly host: RegExp
  /** Holds for its path. */
  readonly path?: RegExp
  /** An answer that is older than this is fetched again; 0 is never kept. */
  readonly maxAgeMs: number
}

/** Why a fetch came to nothing: `sender` named a URL that is not allowed or not there, `gateway` could not reach it. */
export type Fetched =
  | { readonly ok: true; readonly body: string }
  | { readonly ok: false; readonly fault: 'sender' | 'gateway'; readonly reason: string }

/** GET of a URL that a request or the operator names, to hosts that the scheme allows and no others. */
export type PinnedFetch = (url: string, rule: PinRule) => Promise<Fetched>

/** `secrets` are those of the mapping, the first of them the newest; `now` is in milliseconds since the epoch. */
export type VerifierContext = {
  readonly secrets: readonly string[]
  readonly settings: VerifySettings
  readonly now: number
}

/**
 * A scheme in code, for what no row of the table can say. It runs in the gateway's thread, before the body counts for
 * anything: code that loops stops the gateway.
 */
export type VerifierDefinition = {
  /** The name by which `verify.scheme` finds it: that of its file. No built-in scheme can be replaced. */
  readonly scheme: string
  /** The sender, where it is one that is known by its headers: then its event types and delivery ids are. Default: the scheme. */
  readonly source?: string
  /** The headers whose presence makes a request a candidate. None: every request of the path is. */
  readonly headers: readonly string[]
  /** Headers that carry a secret: no template, transform or row sees them. */
  readonly secretHeaders?: readonly string[]
  /**
   * The proof, over the raw bytes. Return the delivery id as `id` where the proof covers it and it is not in the body: a header
   * that is not signed does not tell a captured request from a new one. What is thrown refuses the request as a proof that does not hold (401). What is no answer,
   * or none after 5 s, is a fault of the gateway (503), which senders repeat.
   */
  verify(request: VerifyRequest, context: VerifierContext): Verified | Promise<Verified>
  /** The headers of a proof, so that `hookloom send` can play the sender. `request.headers` has all others. */
  sign?(request: VerifyRequest, context: VerifierContext): Readonly<Record<string, string>>
}

/** A scheme in code as it was loaded. `broken`: its module is missing or does not load, and lets nobody in. */
export type DefinedVerifier =
  | {
      readonly kind: 'sound'
      readonly scheme: string
      readonly definition: VerifierDefinition
      /** Of its code. */
      readonly hash: string
      /** What was thrown, and where, without a text that may quote a request: `a TypeError at acme.ts:12`. */
      toThrown(thrown: unknown): string
    }
  | { readonly kind: 'broken'; readonly scheme: string; readonly problem: ProblemRecord }
