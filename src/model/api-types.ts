// The answers of the admin API, as types only: the page in src/inspector and other clients read exactly these. Times are ISO 8601.

type State = 'pending' | 'parked' | 'accepted' | 'skipped' | 'dropped'
export type JobState = 'queued' | 'running' | 'done' | 'dead' | 'dropped'
type Fault = { readonly code: string; readonly detail: string; readonly frame?: string }
type TriedMapping = { readonly mappingId: string; readonly matched: boolean; readonly why: string }

export type DeliverySummary = {
  readonly deliveryId: string
  readonly receivedAt: string
  readonly hook: string
  readonly source: string | null
  readonly event: string | null
  readonly mappingId: string | null
  /** How often the delivery was repeated. `repeatedAt`: the last time. */
  readonly repeats: number
  readonly repeatedAt: string | null
  readonly state: State
}

/** One delivery in a list. */
export type DeliveryRow = DeliverySummary & {
  /**
   * The subject of the delivery in one line: the first line of its message or text; the error of a parked, dead or failing one; the reason
   * for a skip.
   */
  readonly summary: string
  /** The name of the source for people, such as "GitHub"; null for an unknown sender. */
  readonly sourceName: string | null
  /** The code of its problem. */
  readonly code: string | null
  /** `<file>:<line>` of its problem. */
  readonly place: string | null
  /** The first of its actions. `jobs` counts all of them. */
  readonly became: readonly { readonly kind: string; readonly sessionKey: string }[]
  readonly jobs: { readonly [Name in JobState]: number } & {
    /** Queued jobs whose last attempt failed. */
    readonly failing: number
  }
  /** Milliseconds until the last step of its jobs; null until all of them are done. */
  readonly doneMs: number | null
}

export type Page<Name extends string, Row> = { readonly [Key in Name]: readonly Row[] } & {
  /** `before` of the page of older rows; null if there is none. */
  readonly next: string | null
}

type StepFields = {
  readonly name: string
  readonly state: string
  readonly at: string
  readonly detail: string | null
  readonly model?: string
  readonly usage?: { readonly inputTokens: number; readonly outputTokens: number; readonly costUsd?: number }
}

type PostFields = {
  readonly part: number
  readonly channel: string
  readonly to: string | null
  readonly state: string
  /** The provider's id. */
  readonly messageId: string | null
  readonly at: string | null
  readonly nonce: string
  readonly mayBeTwice: boolean
}

export type JobFields = {
  readonly jobId: string
  /** Null for a wake, which has no run. */
  readonly runId: string | null
  readonly deliveryId: string | null
  readonly kind: string
  readonly agentId: string
  readonly sessionKey: string
  readonly state: JobState
  readonly attempts: number
  readonly lastError: string | null
  readonly steps: readonly StepFields[]
  readonly posts: readonly PostFields[]
}

/** A run with its texts. `prompt`: as it was built, with the boundary; null before the turn has ended. */
export type RunFields = JobFields & { readonly prompt: string | null; readonly reply: string | null }

export type DeliveryFields = DeliverySummary & {
  readonly generation: string
  /** The gateway that took it. */
  readonly node: string | null
  readonly actions: readonly object[]
}

export type ShownFields = DeliveryFields & {
  readonly transformHash: string | null
  readonly bodyDiffered: boolean
  readonly settledAt: string | null
  /** The answer that the sender received. */
  readonly answer: { readonly status: number; readonly body: string; readonly contentType?: string | undefined }
  readonly jobs: readonly JobFields[]
  readonly problem: Fault | null
  readonly trace: readonly TriedMapping[]
  readonly log: readonly string[]
}

/**
 * One delivery. `admitted`: the credentials that let it in; null if neither its request is kept nor its mapping still exists. `madeBy`: its
 * mapping, as configured now.
 */
export type ShownDelivery = ShownFields & {
  readonly sourceName: string | null
  readonly admitted: { readonly token: boolean; readonly scheme: string | null } | null
  readonly madeBy: MadeBy | null
  readonly isRequestKept: boolean
}

export type MadeBy =
  | { readonly kind: 'built-in' }
  | { readonly kind: 'template'; readonly template: string | null }
  /** `file`: absolute; null if the module has none. */
  | { readonly kind: 'transform'; readonly module: string; readonly file: string | null; readonly line: number }

/**
 * A kept request. `encoding`: the encoding of `body`, which is base64 if it is not UTF-8. `hasSignedId`: the signature covers the id of the
 * delivery, so every copy of the request is a duplicate.
 */
export type RequestFields = {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  readonly verifiedBy: string | null
  readonly hasSignedId: boolean
  readonly body: string
  readonly encoding: 'utf8' | 'base64'
}

export type RefusalFields = {
  readonly requestId: string
  /** Milliseconds since the epoch. */
  readonly receivedAt: number
  readonly client: string
  readonly credential: string
  readonly path: string
  readonly hook?: string | undefined
  readonly nearestHook: string | null
  readonly status: number
  readonly code: string
  readonly error: string
  readonly trace: readonly TriedMapping[]
  /** True if the request had no hook token and no mapping tried to verify it. */
  readonly isStranger: boolean
}

/** Items that need a person for one reason. `ids`: the newest deliveries, or request ids of refusals. `since`: the oldest. */
export type AttentionGroup = {
  readonly kind: 'parked' | 'dead' | 'failing' | 'refused'
  /** The error of the newest one. */
  readonly title: string
  readonly code: string | null
  /** `<file>:<line>`. */
  readonly place: string | null
  readonly hooks: readonly string[]
  readonly count: number
  readonly since: string
  readonly ids: readonly string[]
}

export type AttentionFields = { readonly count: number; readonly groups: readonly AttentionGroup[] }

export type SessionFields = {
  readonly sessionKey: string
  readonly agentId: string
  readonly updatedAt: string
  readonly recipient: { readonly channel: string; readonly to: string | null } | null
}

export type MessageFields = {
  readonly role: 'system' | 'user' | 'assistant'
  readonly text: string
  readonly runId: string
  readonly at: string
}

export type EventFields = {
  readonly agentId: string
  readonly sessionKey: string
  readonly text: string
  readonly source: string
  readonly trusted: boolean
  readonly wakes: boolean
  readonly at: string
  readonly deliveryId: string | null
  readonly consumedAt: string | null
}

/** `events`: the events that wait for the next turn. */
export type ShownSession = SessionFields & {
  readonly messages: readonly MessageFields[]
  readonly events: readonly EventFields[]
}

/** One minute of the last hour. `latencyMs`: from the complete body until the delivery is stored. */
export type MinuteFields = {
  readonly at: string
  readonly deliveries: { readonly [Name in State | 'duplicate']: number }
  readonly refused: number
  readonly runs: { readonly done: number; readonly retried: number; readonly dead: number }
  readonly reloads: { readonly live: number; readonly refused: number }
  readonly latencyMs: { readonly p50: number; readonly p95: number } | null
}

export type ProblemFields = {
  readonly detail: string
  readonly code?: string
  readonly frame?: string | undefined
  readonly module?: string | undefined
  /** Milliseconds since the epoch. */
  readonly since?: number
  /** The absolute path of the module. */
  readonly file: string | null
  readonly line: number
}

export type HealthFields = {
  readonly generation: string
  readonly degraded: boolean
  readonly held: boolean
  readonly problems: readonly ProblemFields[]
  readonly lastReloadAt: string | null
  readonly lastGoodAt: string | null
  /** The gateways on the store. */
  readonly nodes: readonly {
    readonly id: string
    readonly version: string
    readonly generation: string
    readonly address: string
    readonly seenAt: string
  }[]
  /** A sentence that names the gateways whose generations differ; null if all are the same. */
  readonly different: string | null
  /** A sentence about a configuration that cannot deliver replies; null if a channel is configured. */
  readonly withoutChannels: string | null
  /** Base of the hooks, with `hooks.path`; null before the port listens. */
  readonly hooksUrl: string | null
  readonly store: { readonly trouble: string | null; readonly warning: string | null; readonly waitingBytes: number }
  readonly deliveries: { readonly [Name in State]: number }
  readonly jobs: { readonly [Name in JobState]: number }
  /** When the job that has been due for longest became due. */
  readonly dueSince: string | null
  readonly lanes: readonly {
    readonly lane: string
    readonly jobs: number
    readonly since: string
    readonly running: boolean
  }[]
  /** The last 60 minutes at most, since the start of the gateway. */
  readonly minutes: readonly MinuteFields[]
}

/** The data of `event: status` in the stream. */
export type StatusFields = {
  readonly generation: string
  readonly degraded: boolean
  /** A save waits for `POST /api/publish`. */
  readonly held: boolean
  readonly problems: number
  readonly lastReloadAt: string | null
}

export type RetryFields = {
  readonly deliveryId: string | null
  readonly state: string
  readonly jobs: readonly string[]
}
