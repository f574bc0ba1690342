// What a host gives the engine, and what it gets.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { PlannedAction } from '../core/model/action.ts'
import type { Delivery } from '../core/model/delivery.ts'
import type { MappingInput } from '../core/model/mapping.ts'
import type { Log } from '../base/log.ts'
import type { Problem } from '../core/model/problem.ts'
import type { SenderResponse } from '../core/model/response.ts'
import type { Answer } from '../core/mapping/answer.ts'
import type { SenderDefinition } from '../model/scheme.ts'
import type { ModuleReport } from '../core/reload/gate.ts'

/** A request as it was sent. `url`: the path with the query. `headers`: with lower-case names. */
export type EngineRequest = {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/**
 * The decision on a request. `skip`: no mapping matches, or the transform returned null. `park`: the fault of the operator, such as a transform that
 * throws: answer so that the sender tries again. `refuse`: the fault of the sender. `handshake`: the answer that the sender waits for.
 */
export type EngineDecision =
  | {
      readonly kind: 'accept'
      readonly mappingId: string
      readonly actions: readonly PlannedAction[]
      /** The answer that the mapping or its transform sets; undefined if it sets none. */
      readonly response: SenderResponse | undefined
    }
  | { readonly kind: 'skip'; readonly mappingId: string | undefined; readonly why: string }
  | { readonly kind: 'park' | 'refuse'; readonly mappingId: string | undefined; readonly problem: Problem }
  | { readonly kind: 'handshake'; readonly answer: Answer }

export type AcceptedRequest = Extract<EngineDecision, { kind: 'accept' }>

/** The request that an action comes from; of a list (`forEach`), its payload has one item. */
export type PlanRequest = Pick<Delivery, 'path' | 'headers' | 'query' | 'source' | 'event'> & {
  readonly payload: unknown
}

export type EngineOptions = {
  /** As `hooks.mappings` of hookloom.jsonc. */
  readonly mappings: readonly MappingInput[]
  /** The directory that has `hooks/transforms`. Default: the working directory. */
  readonly dir?: string
  /** The prefix of the hooks. Default: `/hooks`. */
  readonly path?: string
  /** The token of mappings without `verify`, at least 24 characters. Without it, only `trusted` requests reach them. */
  readonly token?: string
  /** The `process.env` of the transforms. Default: empty. */
  readonly env?: Readonly<Record<string, string>>
  /** The senders that mappings can name and whose requests are recognised; the first one that fits counts. Default: `senderRows`. */
  readonly senders?: readonly SenderDefinition[]
  /**
   * Checks or changes each action, after the templates and the transform; `request` is what they read. Throw a `Problem` to refuse the request. Default: as it is.
   */
  readonly plan?: ((planned: PlannedAction, request: PlanRequest) => PlannedAction) | undefined
  /** Whether saved transforms go live. Default: true. */
  readonly watch?: boolean
  /** Called by the adapters with each accepted request. The sender gets its 200 when this has resolved, and 500 if it rejects. */
  readonly onAccept?: ((accepted: AcceptedRequest, request: EngineRequest) => void | Promise<void>) | undefined
  /** Default: no log. */
  readonly log?: Log
}

/** The part of Koa's context that the middleware uses, so that a host needs no types of Koa. */
type KoaContext = {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  body: unknown
  status: number
  set(fields: Record<string, string>): void
}

export type Engine = {
  /** Decides on a request, and has no effect. `trusted`: the host has checked the sender. Never rejects. */
  decide(request: EngineRequest, options?: { readonly trusted?: boolean }): Promise<EngineDecision>
  /** Handles a request of the Fetch API, such as one of Hono or Bun. A path outside the prefix gets 404. */
  fetch(request: Request): Promise<Response>
  /** Handles a request of `node:http` or Express. Calls `next`, or answers 404, for a path outside the prefix. Nothing may have read the body. */
  node(req: IncomingMessage, res: ServerResponse, next?: () => void): Promise<void>
  /** A middleware of Koa. A path outside the prefix is left to the next one. */
  koa(): (ctx: KoaContext, next: () => Promise<unknown>) => Promise<void>
  /** Calls the listener after each reload with what happened to each module. */
  onReload(listener: (modules: readonly ModuleReport[]) => void): void
  /** Ends the threads and the watcher. */
  close(): Promise<void>
}
