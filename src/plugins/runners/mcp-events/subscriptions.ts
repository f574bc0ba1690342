// The webhook subscriptions of a section. Each is one durable value, which the gateway that answers the client and the one that posts both change.
import { hash } from 'node:crypto'
import { z } from 'zod'
import type { RunnerState } from '../../../define.ts'
import { tryParseJson } from '../shared/kit.ts'

const faults = ['connection_refused', 'timeout', 'tls_error', 'http_4xx', 'http_5xx', 'challenge_failed'] as const

/** Times are milliseconds since the epoch. */
const Subscription = z.object({
  /** Who subscribed: the name in the configuration, and the id of the key of its token. */
  subscriber: z.string(),
  keyId: z.string(),
  /** The name of the event. */
  name: z.string(),
  url: z.string(),
  /** The sealed key that signs, and for some minutes after a change the one before. */
  secret: z.string(),
  former: z.object({ secret: z.string(), until: z.number() }).nullable(),
  /** The place up to which all events were taken, or were refused for good. */
  cursor: z.string(),
  /** Whether events were skipped that were no longer kept; the next answer to the client says so. */
  hasSkipped: z.boolean(),
  endsAt: z.number(),
  /** Failed attempts since the last success or renewal. `retryAt`: null if it is suspended until the client renews it. */
  failures: z.number(),
  retryAt: z.number().nullable(),
  failedSince: z.number().nullable(),
  fault: z.enum(faults).nullable(),
  deliveredAt: z.number().nullable(),
})
export type Subscription = z.infer<typeof Subscription>

const prefix = 'subscription/'
/** A value is deleted later than its subscription ends, so that the end is logged. */
const leftMs = 3_600_000
const maxAttempts = 100

/** The same for the same subscriber, callback and event, also after a restart. It is no secret. */
export function toSubscriptionId({ subscriber, url, name }: Pick<Subscription, 'subscriber' | 'url' | 'name'>): string {
  return `sub_${hash('sha256', JSON.stringify([subscriber, url, name, {}])).slice(0, 32)}`
}

export type Subscriptions = {
  /** All of the section by their ids, also those that have ended and are not removed yet. */
  list(): Promise<Map<string, Subscription>>
  read(id: string): Promise<Subscription | undefined>
  /**
   * Replaces the subscription by what `change` returns; undefined removes it, and the same object changes nothing. Calls it again if another gateway was
   * first. Resolves to what is stored.
   */
  update(
    id: string,
    change: (now: Subscription | undefined) => Subscription | undefined,
  ): Promise<Subscription | undefined>
}

export function createSubscriptions(state: RunnerState): Subscriptions {
  const parse = (text: string) => Subscription.safeParse(tryParseJson(text)).data
  return {
    async list() {
      const found = await state.list(prefix)
      return new Map(
        found.flatMap(({ key, text }) => {
          const one = parse(text)
          return one === undefined ? [] : [[key.slice(prefix.length), one] as const]
        }),
      )
    },
    async read(id) {
      const stored = await state.read(`${prefix}${id}`)
      return stored && parse(stored.text)
    },
    async update(id, change) {
      const key = `${prefix}${id}`
      for (let attempt = 0; attempt < maxAttempts; attempt++) {
        const from = await state.read(key)
        const now = from && parse(from.text)
        const next = change(now)
        if (next === now) return now
        const to = next && { text: JSON.stringify(next), until: next.endsAt + leftMs }
        if (await state.write([{ key, from, to }])) return next
      }
      throw new Error('The subscription could not be changed, because other gateways change it all the time.')
    },
  }
}
