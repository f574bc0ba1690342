// The interface to the API of a sender that remembers its deliveries. Each sender has one file.

/** A request that the sender sent or tried to send. Header names are in lower case. */
export type SentRequest = {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer>
  /** The URL that the sender called, if its API shows the URL. */
  readonly url?: string | undefined
}

/** One attempt of a sender to deliver a request. */
export type SentAttempt = {
  /** The sender's id of the delivery, the same in each of its attempts. */
  readonly id: string
  /**
   * The place in the order of attempts: a later attempt has a greater place. It is a time in milliseconds since the epoch, by the sender's
   * clock, or a number that the sender gives.
   */
  readonly place: number
  /** Whether the receiver answered 2xx. */
  readonly isDelivered: boolean
  /** The reference by which `fetch` finds the request. */
  readonly ref: string
  /** The request, if the list has it. */
  readonly request?: SentRequest | undefined
  /** If `request` is undefined: the headers of the request that name the delivery. */
  readonly headers?: SentRequest['headers'] | undefined
}

/** `now`: the sender's clock, if places are times. Attempts that are newer than a minute may still run. */
export type OutboxPage = { readonly attempts: readonly SentAttempt[]; readonly now?: number | undefined }

/** Whether the sender calls the hook. `why`: the reason if it does not, as a sentence. */
export type HookState = { readonly isOn: true } | { readonly isOn: false; readonly why: string }

/** The deliveries that a sender remembers. Each call throws `recover-unavailable` if the API fails. */
export type Outbox = {
  /** The name of its cursor, from the API and the webhook. It stays the same if the credential changes. */
  readonly name: string
  /** Whether the sender keeps a list of its deliveries. If not, only its state is known. */
  readonly remembers: boolean
  /** Whether places are times. If not, `--since` takes all that the sender remembers. */
  readonly hasTimes: boolean
  /** How far before the last seen place a new attempt may still appear. */
  readonly overlap: number
  /** Pages of attempts, the newest first, until the caller stops or the sender remembers no more. */
  pages(): AsyncIterable<OutboxPage>
  /** Fetches the request of an attempt, if the list does not have it; undefined if the sender no longer has it. */
  fetch(attempt: Pick<SentAttempt, 'id' | 'ref'>): Promise<SentRequest | undefined>
  state(): Promise<HookState>
  /** Makes the sender call the hook again. */
  turnOn(): Promise<void>
}

/** The `overlap` if places are times: attempts are listed after they end, and clocks are corrected. */
export const tenMinutes = 600_000

/** Converts header names to lower case. The object has no prototype, because customers of the sender can choose names. */
export function toSentHeaders(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const lower: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(headers)) if (typeof value === 'string') lower[name.toLowerCase()] = value
  return lower
}

/** Whether a sender counts a request with this status as delivered. */
export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300
}
