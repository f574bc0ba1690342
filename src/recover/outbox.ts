// What every sender with an API for its deliveries offers. Each sender has one file.

/** A request as the sender sent it, or tried to. Header names are in lower case. */
export type SentRequest = {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer>
  /** The URL that the sender called, if it shows it. */
  readonly url?: string | undefined
}

/** One attempt of a sender to deliver something. */
export type SentAttempt = {
  /** The sender's id of the delivery, the same in each of its attempts. */
  readonly id: string
  /** Orders the attempts: a later one has a greater place. Milliseconds since the epoch by the sender's clock, or a number of the sender. */
  readonly place: number
  /** True: the receiver answered 2xx. */
  readonly isDelivered: boolean
  /** What `fetch` needs to find the request. */
  readonly ref: string
  /** The request, if the list has it. */
  readonly request?: SentRequest | undefined
  /** Without `request`: the headers of the request that name the delivery. */
  readonly headers?: SentRequest['headers'] | undefined
}

/** `now`: the sender's clock, if places are times. Attempts that are newer than a minute may still run. */
export type OutboxPage = { readonly attempts: readonly SentAttempt[]; readonly now?: number | undefined }

/** Whether the sender calls the hook. `why`: a sentence about a hook that it does not call. */
export type HookState = { readonly isOn: true } | { readonly isOn: false; readonly why: string }

/** The deliveries that a sender remembers. Each call throws `recover-unavailable` if the API fails. */
export type Outbox = {
  /** Names its cursor: the API and the webhook. It does not change with the credential. */
  readonly name: string
  /** False: the sender keeps no list, so only its state is known. */
  readonly remembers: boolean
  /** Whether places are times. Otherwise `--since` takes everything that the sender remembers. */
  readonly hasTimes: boolean
  /** How far before the last seen place a new attempt may still appear. */
  readonly overlap: number
  /** Pages of attempts, the newest first, until the caller stops or the sender remembers no more. */
  pages(): AsyncIterable<OutboxPage>
  /** The request of an attempt whose list does not have it; undefined if the sender no longer has it. */
  fetch(attempt: Pick<SentAttempt, 'id' | 'ref'>): Promise<SentRequest | undefined>
  state(): Promise<HookState>
  /** Makes the sender call the hook again. */
  turnOn(): Promise<void>
}

/** An `overlap` of times: attempts are listed after they end, and clocks are corrected. */
export const tenMinutes = 600_000

/** Header names in lower case. The object has no prototype, because senders' customers can choose names. */
export function toSentHeaders(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const lower: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(headers)) if (typeof value === 'string') lower[name.toLowerCase()] = value
  return lower
}

/** True for a status that a sender counts as delivered. */
export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300
}
