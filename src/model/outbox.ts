// The interface to the API of a sender that remembers its deliveries.
import type { z } from 'zod'
import { Problem } from '../core/model/problem.ts'

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

/** The deliveries that a sender remembers. What `openApi` throws if the API fails passes through: `recover-unavailable`. */
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

/** `path`: the path below the base URL, with its query. `allow`: the statuses besides 2xx that are no failure. */
export type ApiRequest = {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH'
  readonly path: string
  readonly body?: object | URLSearchParams
  readonly allow?: readonly number[]
}

/** `now`: the clock of the API in milliseconds, so that nothing is lost if the clock of this machine is wrong. */
export type ApiAnswer = {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly now: number
}

export type ApiCall = (request: ApiRequest) => Promise<ApiAnswer>

export type ApiAccess = {
  readonly baseUrl: string
  /** The headers with the credential, computed for each request: a token may expire. `now`: the time by the clock of the API, if it is known. */
  readonly authorize: (now: number) => Promise<Readonly<Record<string, string>>> | Readonly<Record<string, string>>
}

/** What an outbox gets from the gateway. */
export type OutboxHost = {
  /** Calls of one API: each goes only to `baseUrl`, waits for the limits of the API, and is tried again after a failure that may pass. */
  readonly openApi: (parts: ApiAccess) => ApiCall
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

/** What a sender remembers of its deliveries. It runs in the main thread of the gateway. */
export type OutboxDefinition<Options = unknown> = {
  /** The value of `recover.sender` in a mapping. */
  readonly name: string
  /** One sentence for editors and pages: what is remembered, and for how long. */
  readonly about: string
  /** The page that documents the API. */
  readonly docs?: string
  /** False: the sender keeps no list of its deliveries, so only the state of its webhook is known. */
  readonly remembers: boolean
  /** The schema of `recover`, without `sender` and `turnOn`: a strict object of zod. */
  readonly options: z.ZodType<Options>
  /** Makes the outbox of a mapping. It asks nothing yet. */
  create(options: Options, host: OutboxHost): Outbox
}

/** A problem that stays until the operator changes something: asking again does not help. */
export class ApiDenial extends Problem {
  constructor(detail: string) {
    super('recover-unavailable', detail)
  }
}
