// Sources: what the gateway watches and fetches itself, such as a mailbox.
import type { IncomingMessage } from 'node:http'
import type { z } from 'zod'
import type { Log } from '../base/log.ts'
import type { Verifier } from '../core/model/verifier.ts'
import type { VerifySettings } from '../core/model/verify.ts'
import type { PinnedFetch } from './proof.ts'

/** What a source fetched: it becomes a request to the hook with the name of the source. */
export type SourceItem = {
  /** The idempotency key: an item that comes again is one delivery, no matter on which way. */
  readonly key: string
  readonly payload: object
}

/** Counts refused pushes by client, like failed signatures of the hook endpoints. A push with a valid token always passes. */
export type PushGate = {
  clientOf(request: IncomingMessage): string
  /** Seconds until the lockout of the client ends; undefined if it is not locked out. */
  readLockSeconds(client: string): number | undefined
  fail(client: string): void
}

/** What a watch gets from the gateway. Of several gateways on a store, one has the duty to watch. */
export type SourceHost = {
  /** The config directory: `state/` is for files that another process may read. */
  readonly dir: string
  /** The place in the source, as `store` has stored it; undefined if nothing was ever stored. */
  place(): Promise<string | undefined>
  /**
   * Stores the items and the next place in one commit, and then runs the items. Rejects if another process moved the place since it was last read or
   * stored here: nothing is stored, and the next try begins at the new place.
   */
  store(items: readonly SourceItem[], place: string): Promise<void>
  /** Proves pushes by a scheme of the built-in senders. `fetch`: fetches its keys. */
  readonly verifier: (settings: VerifySettings, fetch: PinnedFetch) => Verifier
  readonly gate: PushGate
  readonly log: Log
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

/** A watch that runs. */
export type SourceWatch = {
  /** The current problems, one sentence each. */
  problems(): readonly string[]
  /** Resolves when nothing of the watch runs any more. The next watch finds what was not stored. */
  stop(): Promise<void>
}

/** A source. It runs in the main thread of the gateway. */
export type SourceDefinition<Options = unknown> = {
  /** The name of its section in `hooks`, and of the hook that gets what it fetches. */
  readonly name: string
  /** The name in sentences. */
  readonly label: string
  /** One sentence for editors and pages. */
  readonly about: string
  /** The page that documents the API. */
  readonly docs?: string
  /** The schema of the section. */
  readonly options: z.ZodType<Options>
  /** What is watched, such as an address: its place in the store has this name. Undefined: nothing is watched. */
  account(options: Options): string | undefined
  /** Watches from now on, until `stop`. */
  watch(options: Options, host: SourceHost): SourceWatch | Promise<SourceWatch>
}

/** The name of the place in a source in the store of the gateway. */
export function toSourceCursor(name: string, account: string): string {
  return `${name}:${account}`
}
