// Sources: what the gateway watches and fetches itself, such as a mailbox. The gateway runs the passes of a source; the source says what is new.
import type { OwnCode } from './own.ts'
import type { IncomingMessage } from 'node:http'
import type { z } from 'zod'
import type { Log } from '../base/log.ts'
import type { Sleep } from '../base/retry.ts'
import type { Verifier } from '../core/model/verifier.ts'
import type { VerifySettings } from '../core/model/verify.ts'
import type { Probe } from './channel.ts'
import type { PinnedFetch } from './proof.ts'
import type { FileLimits, SourceFile } from './source-files.ts'

/** What a source fetched: it becomes a request to the hook with the name of the source's section. */
export type SourceItem = {
  /** The same for the same item, on whichever way and how often it comes: then it is one delivery. 1 to 256 characters. */
  readonly key: string
  /** The body of the request, as JSON. */
  readonly payload: object
  /**
   * Files that belong to the item. The runs that the item causes get the first 20 of them in their workspace, of at most 10 MiB each and 25 MiB in all;
   * their prompt has the path of each, or why it is missing. The contents are not stored: `readFiles` fetches them when a run begins.
   */
  readonly files?: readonly SourceFile[]
}

/** Counts refused pushes by client, like failed signatures of the hook endpoints. A push with a valid token always passes. */
export type PushGate = {
  clientOf(request: IncomingMessage): string
  /** Seconds until the lockout of the client ends; undefined if it is not locked out. */
  readLockSeconds(client: string): number | undefined
  fail(client: string): void
}

/** A request that arrived elsewhere. */
export type ArrivedRequest = {
  /** The id of the request. If its sender gives no delivery id, it is the dedupe key, so that a request that is handed over twice runs once. */
  readonly id: string
  readonly method: string
  /** Path and query. Only a path below `hooks.path` has hooks. */
  readonly url: string
  /** Names and values by turns, as in `IncomingMessage` of Node. */
  readonly rawHeaders: readonly string[]
  readonly body: Uint8Array
  /** The address of the client, which counts for the throttle. */
  readonly client: string
  /** When it arrived, in milliseconds since the epoch. A signed time is compared with it. */
  readonly at: number
}

/** An answer of the hook port. */
export type ArrivedAnswer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** What a source gets from the gateway. Of several gateways on a store, one has the duty to watch: only there, passes run. */
export type SourceHost = {
  /** The config directory: `state/` is for files that another process may read. */
  readonly dir: string
  /** The place in the source, as `store` has stored it; undefined if nothing was ever stored. */
  place(): Promise<string | undefined>
  /**
   * Stores the items and the next place in one commit, and then runs the items. An item whose key is known is dropped. Rejects if another gateway
   * moved the place since it was last read or stored here: nothing is stored, and the next pass begins at the new place.
   */
  store(items: readonly SourceItem[], place: string): Promise<void>
  /**
   * For a source that brings whole requests: answers one as the hook port would have answered it when it arrived, with the same refusals,
   * handshakes and throttle. Below status 500 the gateway has done with it. `Prefer: wait` is ignored.
   */
  receive(request: ArrivedRequest): Promise<ArrivedAnswer>
  /**
   * `fetch` with limits: a request and its answer take at most two minutes and 32 MiB, end when the source stops, and follow no redirect, which
   * could take a credential to another host.
   */
  readonly fetch: typeof fetch
  /** Aborted when the source stops: then a connection ends that was kept between two calls. */
  readonly signal: AbortSignal
  /** Waits. Rejects when the signal is aborted. */
  readonly pause: Sleep
  /** For a source that is called: proves the requests by a scheme of the senders. `fetch`: fetches its keys. */
  readonly verifier: (settings: VerifySettings, fetch: PinnedFetch) => Verifier
  /** For a source that is called: locks out clients whose requests have no valid proof. */
  readonly gate: PushGate
  /** Fields and messages have no payload. Secrets of the configuration are masked in them. */
  readonly log: Log
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

/** How a pass ended, if not well. */
export type PassFailure = {
  /** One sentence for the operator, without a secret and without anything of an item. */
  readonly problem: string
  /** When the other side asks to try again. Default: after 5 s, 15 s, a minute, and then every five minutes. */
  readonly retryAfterMs?: number | undefined
}

/** Work that the gateway runs in passes, one after the other, on one of the gateways of a store at a time. */
export type PassingParts = {
  /** Milliseconds between the end of a pass and the next one, at least 1,000. Default: a minute. */
  readonly everyMs?: number
  /**
   * One pass: for a source, reads the place, fetches what is new, and stores it. Ends soon after the signal is aborted. What keeps a connection, or
   * has times of its own, stays in its pass until then. A failure is returned; an exception is one too, whose message is not shown.
   */
  pass(signal: AbortSignal): Promise<PassFailure | undefined | void>
  /** Of work that stays in its pass: the current problems, one sentence each, as in `PassFailure`. */
  problems?(): readonly string[]
}

/** What the code of a source makes. */
export type SourceParts = PassingParts & {
  /** Checks whether the other side answers and accepts the credential, for `hookloom doctor`. Stores nothing. */
  probe?(signal: AbortSignal): Promise<Probe>
  /**
   * Of a source whose items have files: yields the contents of the file of each `ref`, in their order, or undefined for a file that no longer exists.
   * It may stop reading a file after `maxBytes`. It is called for each attempt of a run, for several runs at a time, also on a gateway that runs no pass:
   * then `place`, `store` and `receive` reject. An exception means that the run is tried again later. Runs share what `create` made, so one login, kept
   * there, is enough for all of them.
   */
  readFiles?(refs: readonly string[], limits: FileLimits): AsyncIterable<Uint8Array | undefined>
}

/** A source. It runs in the main thread of the gateway. */
export type SourceDefinition<Options = unknown> = {
  /** The value of `kind` in a section of `sources`. Of a built-in mailbox, the name of its section in `hooks`. */
  readonly name: string
  /** The name in sentences. Default: the path of the section, such as `sources.tides`. */
  readonly label?: string
  /** One sentence for editors and pages: what is fetched. */
  readonly about: string
  /** The page that documents the API. */
  readonly docs?: string
  /** True for a source that brings requests to other hooks, by `receive`: its section needs no mapping. */
  readonly receives?: boolean
  /**
   * The schema of the section without `kind`: a strict object of zod. A key whose name says so (`token`, `password`, `apiKey`), and what comes from
   * `${NAME}`, is a secret: it is masked in problems and in the log.
   */
  readonly options: z.ZodType<Options>
  /**
   * What is watched, such as an address: its place in the store has this name, so it has no credential, and stays the same when a credential
   * changes. Undefined: nothing is watched.
   */
  account(options: Options): string | undefined
  /** Makes the source of a section. Nothing runs before its first pass. */
  create(options: Options, host: SourceHost): SourceParts
}

/** A loaded section of `sources`. `broken`: nothing is fetched until the code is corrected. */
export type OwnSource = OwnCode<SourceDefinition> & { readonly name: string }

/** A failure of a source whose message the operator may read. */
export class SourceFailure extends Error {
  override readonly name = 'SourceFailure'
  /** The milliseconds after which the other side asks to try again. */
  readonly retryAfterMs: number | undefined

  constructor(message: string, { retryAfterMs, cause }: { retryAfterMs?: number | undefined; cause?: unknown } = {}) {
    super(message, { cause })
    this.retryAfterMs = retryAfterMs
  }
}

const retryMs = [5_000, 15_000, 60_000, 300_000] as const

/** The milliseconds until the next attempt after a failure: what the other side asks for, within limits, or else longer after each of `failures` before. */
export function chooseRetryMs({ retryAfterMs }: Pick<SourceFailure, 'retryAfterMs'>, failures: number): number {
  if (retryAfterMs === undefined) return retryMs[failures] ?? retryMs[3]
  return Math.min(Math.max(retryAfterMs, 1_000), 3_600_000)
}

/** The name of the place in a source in the store of the gateway. */
export function toSourceCursor(name: string, account: string): string {
  return `${name}:${account}`
}
