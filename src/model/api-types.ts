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
  /** How often it was sent again. `repeatedAt`: the last time. */
  readonly repeats: number
  readonly repeatedAt: string | null
  readonly state: State
}

/** One delivery in a list. */
export type DeliveryRow = DeliverySummary & {
  /**
   * What it is about, in one line: the first line of its message or text; the error of a parked, dead or failing one; why it was
   * skipped.
   */
  readonly summary: string
  /** What people call the source, such as "GitHub"; null if it is no known sender. */
  readonly sourceName: string | null
  /** The code of its problem. */
  readonly code: string | null
  /** `<file>:<line>` of its problem. */
  readonly place: string | null
  /** Its first actions. `jobs` counts all of them. */
  readonly became: readonly { readonly kind: string; readonly sessionKey: string }[]
  readonly jobs: { readonly [Name in JobState]: number } & {
    /** Queued jobs whose last attempt failed. */
    readonly failing: number
  }
  /** Milliseconds until the last step of its jobs; null while one of them is not done. */
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
  /** What the sender got. */
  readonly answer: { readonly status: number; readonly body: string }
  readonly jobs: readonly JobFields[]
  readonly problem: Fault | null
  readonly trace: readonly TriedMapping[]
  readonly log: readonly string[]
}

/**
 * One delivery. `admitted`: what let it in; null if neither its request is kept nor its mapping exists any more. `madeBy`: its
 * mapping, as it is configured now.
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
 * A kept request. `encoding`: of `body`; base64 if it is not UTF-8. `hasSignedId`: its signature covers the id of the delivery, so
 * every copy of it is a duplicate.
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
  /** It had no hook token, and no mapping tried to verify it. */
  readonly isStranger: boolean
}

/** What needs a person, for one reason. `ids`: the newest deliveries, or the request ids of refusals. `since`: the oldest. */
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

/** `events`: those that wait for the next turn. */
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
  /** Of the module: absolute. */
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
  /** A sentence that names the gateways whose generations differ; null if they do not. */
  readonly different: string | null
  /** A sentence about a configuration in which replies have nowhere to go; null if a channel is configured. */
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
  /** Since the start of the gateway, at most the last 60. */
  readonly minutes: readonly MinuteFields[]
}

/** What `event: status` of the stream carries. */
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
