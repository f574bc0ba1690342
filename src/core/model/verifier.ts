// A verifier proves the sender of a request. It reads raw bytes and headers, and no input from a sender makes it throw.

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
 * fetched, is answered with 503, because many senders never repeat a request after a 401. `body`: of a sender that encrypts, what it encrypted, in the
 * media type of the request. The delivery has it in place of the body that was sent.
 */
export type Verified =
  | { readonly ok: true; readonly id?: string | undefined; readonly body?: Uint8Array | undefined }
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
