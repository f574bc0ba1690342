// The hooks of a gateway inside a server of the host, which then needs no second port.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { attemptWithin } from '../../base/time.ts'
import { toRefusalAnswer } from '../../core/mapping/answer.ts'
import { Problem } from '../../core/model/problem.ts'
import type { SourceHost } from '../../model/source.ts'
import { createInjector } from './inject.ts'
import { createMalformedGuard } from './malformed.ts'
import { readHookName, readRequestUrl } from './target.ts'

/** The part of Koa's context that the middleware uses, so that a host needs no types of Koa. */
type KoaContext = { readonly req: IncomingMessage; readonly res: ServerResponse; respond?: boolean | undefined }

export type HookHandler = {
  /** Handles a request of `node:http` or Express. Calls `next`, or answers 404, for a path outside `hooks.path`. Nothing may have read the body. */
  node(req: IncomingMessage, res: ServerResponse, next?: () => void): void
  /** A middleware of Koa. A path outside `hooks.path` is left to the next one. */
  koa(): (ctx: KoaContext, next: () => Promise<unknown>) => Promise<unknown>
}

type Mount = HookHandler & {
  /** Answers a request that arrived elsewhere, also if the host has no server of its own. A path outside `hooks.path` gets 404. */
  readonly receive: SourceHost['receive']
  /** From now on, requests get 503. Resolves when the running ones have their answers, at the latest after `graceMs`. */
  close(graceMs: number): Promise<void>
}

/** `path`: `hooks.path`. */
export function createMount({ listener, path }: { listener: RequestListener; path: () => string }): Mount {
  const onRequest = createMalformedGuard().watch(listener)
  const running = new Set<Promise<void>>()
  let isClosing = false

  function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const ended = new Promise<void>((resolve) => res.once('close', resolve))
    if (isClosing) {
      const { status, body } = toRefusalAnswer(new Problem('store-unavailable', 'The gateway is stopping.'))
      res.writeHead(status, { 'content-type': 'application/json; charset=utf-8', connection: 'close' }).end(body)
      return ended
    }
    running.add(ended)
    void ended.then(() => running.delete(ended))
    onRequest(req, res)
    return ended
  }

  return {
    receive: createInjector({ listener: (req, res) => void handle(req, res), path }),
    node(req, res, next) {
      const url = readRequestUrl(req)
      if (readHookName(url, path()) !== undefined) {
        req.url = url
        void handle(req, res)
      } else if (next === undefined) res.writeHead(404).end()
      else next()
    },
    koa: () => async (ctx, next) => {
      if (readHookName(ctx.req.url ?? '/', path()) === undefined) return await next()
      ctx.respond = false
      return await handle(ctx.req, ctx.res)
    },
    async close(graceMs) {
      isClosing = true
      await attemptWithin(graceMs, () => Promise.all(running))
    },
  }
}
