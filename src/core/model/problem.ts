// The table of failures: each code with its HTTP status, the exit code of a command and its title. The table in `config/README.md` is generated
// from this one.

/** Exit codes after sysexits.h; `usage` is a wrong command line. */
export const exitCodes = {
  ok: 0,
  usage: 64,
  invalid: 65,
  unavailable: 69,
  broken: 70,
  limited: 75,
  denied: 77,
  config: 78,
} as const

type ProblemKind = Exclude<keyof typeof exitCodes, 'ok'>

type Row = { status: number; kind: ProblemKind; title: string }

export const problems = {
  'hook-unknown': { status: 404, kind: 'invalid', title: 'No hook has this name' },
  'token-in-query': { status: 400, kind: 'invalid', title: 'The query string has a token' },
  'loop-detected': { status: 400, kind: 'invalid', title: 'Replies and runs caused each other too often' },
  'method-not-allowed': { status: 405, kind: 'invalid', title: 'Hooks accept only POST' },
  unauthorized: { status: 401, kind: 'denied', title: 'No valid hook token' },
  'proof-unavailable': { status: 503, kind: 'unavailable', title: 'The proof of the sender could not be checked' },
  'rate-limited': { status: 429, kind: 'limited', title: 'Too many failed authentications from this client' },
  'request-malformed': { status: 400, kind: 'invalid', title: 'The request is not well-formed HTTP' },
  'body-too-large': { status: 413, kind: 'invalid', title: 'The body is over the limit' },
  'body-timeout': { status: 408, kind: 'invalid', title: 'The body did not arrive in time' },
  'body-incomplete': { status: 400, kind: 'invalid', title: 'The body ended early' },
  'body-invalid': { status: 400, kind: 'invalid', title: 'The body does not parse' },
  'media-type-unsupported': { status: 415, kind: 'invalid', title: 'The hook does not accept this media type' },
  'encoding-unsupported': { status: 415, kind: 'invalid', title: 'The content encoding is not supported' },
  'payload-invalid': { status: 400, kind: 'invalid', title: 'A field is missing or of the wrong type' },
  'idempotency-key-invalid': { status: 400, kind: 'invalid', title: 'Idempotency-Key is blank or too long' },
  'session-key-denied': { status: 400, kind: 'denied', title: 'This session key is not allowed' },
  'agent-denied': { status: 400, kind: 'denied', title: 'This agent is not allowed' },
  'model-denied': { status: 400, kind: 'denied', title: 'This model is not allowed' },
  'too-many-items': { status: 400, kind: 'invalid', title: 'The forEach list has too many items' },
  'transform-missing': { status: 500, kind: 'broken', title: 'The transform module does not exist' },
  'transform-build-failed': { status: 500, kind: 'broken', title: 'The transform module does not build' },
  'transform-load-failed': { status: 500, kind: 'broken', title: 'The transform module does not load' },
  'transform-failed': { status: 500, kind: 'broken', title: 'The transform threw' },
  'transform-timeout': { status: 500, kind: 'broken', title: 'The transform timed out' },
  'transform-result-invalid': {
    status: 500,
    kind: 'broken',
    title: 'The transform returned an invalid action',
  },
  'mapping-missing': { status: 500, kind: 'broken', title: 'No mapping takes an accepted delivery any more' },
  'verifier-failed': { status: 503, kind: 'broken', title: 'A verifier module is missing or does not load' },
  'channel-failed': { status: 503, kind: 'broken', title: 'A channel module is missing or does not load' },
  'plugin-failed': { status: 503, kind: 'broken', title: 'A plugin is missing or does not load' },
  overloaded: { status: 503, kind: 'unavailable', title: 'Too many unverified request bodies arrive at once' },
  'queue-full': { status: 503, kind: 'unavailable', title: 'Too many runs with the same flow key are waiting' },
  'store-unavailable': { status: 503, kind: 'unavailable', title: 'The delivery could not be stored' },
  'store-full': { status: 503, kind: 'unavailable', title: 'The store is full' },
  'store-locked': { status: 503, kind: 'unavailable', title: 'Another gateway is using this store' },
  'gateway-unreachable': { status: 503, kind: 'unavailable', title: 'No gateway answers on the admin port' },
  'internal-error': { status: 500, kind: 'broken', title: 'An error in the gateway itself' },
  'not-found': { status: 404, kind: 'invalid', title: 'The id does not exist' },
  conflict: { status: 409, kind: 'invalid', title: 'The current state does not allow this operation' },
  'origin-denied': {
    status: 403,
    kind: 'denied',
    title: 'The request came from another site, or names another host than the admin port',
  },
  'store-unreadable': { status: 500, kind: 'denied', title: 'The user of a command may not read the store' },
  'row-damaged': { status: 500, kind: 'broken', title: 'A row of the store is damaged' },
  'config-invalid': { status: 500, kind: 'config', title: 'The configuration is invalid' },
  'config-missing': { status: 500, kind: 'config', title: 'There is no configuration here' },
  'gmail-consent-missing': {
    status: 401,
    kind: 'denied',
    title: 'Google denied access to the mailbox',
  },
  'gmail-unavailable': { status: 503, kind: 'unavailable', title: 'A request to Google failed' },
  'recover-unavailable': {
    status: 503,
    kind: 'unavailable',
    title: 'The API of the sender did not return its deliveries',
  },
  'usage-invalid': { status: 400, kind: 'usage', title: 'The command line is wrong' },
} as const satisfies Record<string, Row>

export type ProblemCode = keyof typeof problems

/** Why a mapping did or did not match a delivery. */
export type TraceEntry = { mappingId: string; matched: boolean; why: string }

type ProblemExtras = {
  /** The cause. It is logged; no answer contains it. */
  cause?: unknown
  /** Seconds for a `Retry-After` header. */
  retryAfterSeconds?: number
  /** The methods of an `Allow` header. Default: POST. */
  allow?: string
  /** A code frame or a list, for the console and `show`; never sent to a sender. */
  frame?: string
  /** Why each mapping did not match the request, for the record of a refusal; never sent to a sender. */
  trace?: readonly TraceEntry[]
}

/** A failure with a code. `detail` is one sentence that the sender may read: no secret, no payload. */
export class Problem extends Error {
  override readonly name = 'Problem'
  readonly code: ProblemCode
  readonly retryAfterSeconds: number | undefined
  readonly allow: string | undefined
  readonly frame: string | undefined
  readonly trace: readonly TraceEntry[]

  constructor(code: ProblemCode, detail: string, extras: ProblemExtras = {}) {
    super(detail, extras.cause === undefined ? undefined : { cause: extras.cause })
    this.code = code
    this.retryAfterSeconds = extras.retryAfterSeconds
    this.allow = extras.allow
    this.frame = extras.frame
    this.trace = extras.trace ?? []
  }

  /** The same problem with the reasons of the mappings. */
  withTrace(trace: readonly TraceEntry[]): Problem {
    const { code, message, cause, retryAfterSeconds, allow, frame } = this
    return new Problem(code, message, {
      cause,
      trace,
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
      ...(allow === undefined ? {} : { allow }),
      ...(frame === undefined ? {} : { frame }),
    })
  }

  get status(): number {
    return problems[this.code].status
  }

  get kind(): ProblemKind {
    return problems[this.code].kind
  }
}

/** Turns any thrown value into a Problem. An unexpected error becomes `internal-error`, and its text is only for the operator. */
export function toProblem(thrown: unknown): Problem {
  if (thrown instanceof Problem) return thrown
  return new Problem('internal-error', 'The gateway failed on this request. Its log has the reason.', { cause: thrown })
}

/** The part of a problem that is stored and shown to the operator. */
export type ProblemRecord = { code: ProblemCode; detail: string; frame?: string }

export function toProblemRecord(problem: Problem): ProblemRecord {
  return {
    code: problem.code,
    detail: problem.message,
    ...(problem.frame === undefined ? {} : { frame: problem.frame }),
  }
}
