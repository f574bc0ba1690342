// The engine as a part of servers: of `node:http` and what is built on it, of Koa, and of the Fetch API.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { readBytes } from '../base/http.ts'
import { readBody } from '../gateway/http/body.ts'
import { toHeaders } from '../gateway/http/admission.ts'
import { readHookName, readRequestUrl } from '../gateway/http/target.ts'
import type { Config } from '../model/config/config.ts'
import type { Log } from '../base/log.ts'
import { Problem, toProblem } from '../core/model/problem.ts'
import { type Answer, toRefusalAnswer } from '../core/mapping/answer.ts'
import { buildTooLargeProblem } from '../gateway/proofs/inflate.ts'
import type { Engine, EngineOptions, EngineRequest } from './types.ts'

type AdapterParts = Pick<Engine, 'decide'> &
  Pick<EngineOptions, 'onAccept'> & { readonly config: Pick<Config, 'hooks' | 'server'>; readonly log: Log }

export function createAdapters({
  decide,
  config,
  onAccept,
  log,
}: AdapterParts): Pick<Engine, 'fetch' | 'node' | 'koa'> {
  return {
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      if (!isInside(pathname)) return toResponse(toRefusalAnswer(new Problem('hook-unknown', 'Nothing is here.')))
      const { maxBodyBytes } = config.server
      const body = await readBytes(request.body, maxBodyBytes)
      if (body === undefined) return toResponse(toRefusalAnswer(buildTooLargeProblem(maxBodyBytes)))
      const headers = Object.fromEntries(request.headers)
      return toResponse(await answer({ method: request.method, url: pathname + search, headers, body }))
    },
    async node(req, res, next) {
      const sent = await answerNode(req, res)
      if (sent !== undefined) {
        res.writeHead(sent.status, toAnswerHeaders(sent))
        res.end(sent.body)
      } else if (next === undefined) {
        res.writeHead(404).end()
      } else next()
    },
    koa: () => async (ctx, next) => {
      const sent = await answerNode(ctx.req, ctx.res)
      if (sent === undefined) return void (await next())
      ctx.body = sent.body ?? null
      ctx.status = sent.status
      ctx.set(toAnswerHeaders(sent))
    },
  }

  function isInside(url: string): boolean {
    return readHookName(url, config.hooks.path) !== undefined
  }

  /** Undefined for a path outside the prefix. */
  async function answerNode(req: IncomingMessage, res: ServerResponse): Promise<Answer | undefined> {
    const url = readRequestUrl(req)
    if (!isInside(url)) return undefined
    const { maxBodyBytes: limit, bodyTimeoutMs: timeoutMs } = config.server
    try {
      const body = await readBody(req, { limit, timeoutMs })
      return await answer({ method: req.method ?? 'GET', url, headers: toHeaders(req.rawHeaders), body })
    } catch (error) {
      res.shouldKeepAlive = false
      return toRefusalAnswer(toProblem(error))
    }
  }

  async function answer(request: EngineRequest): Promise<Answer> {
    const decision = await decide(request)
    switch (decision.kind) {
      case 'handshake':
        return decision.answer
      case 'skip':
        return { status: 204, body: undefined }
      case 'park':
      case 'refuse':
        return toRefusalAnswer(decision.problem)
      case 'accept':
        try {
          await onAccept?.(decision, request)
        } catch (error) {
          log.error({ err: error }, 'onAccept failed')
          return toRefusalAnswer(new Problem('internal-error', 'The host could not take this request.'))
        }
        return decision.response ?? { status: 200, body: JSON.stringify({ ok: true }) }
    }
  }
}

function toAnswerHeaders({ body, contentType, headers }: Answer): Record<string, string> {
  const type = body === undefined ? {} : { 'content-type': contentType ?? 'application/json; charset=utf-8' }
  // the answer may quote the payload: no browser may take it for a page
  return { ...type, 'x-content-type-options': 'nosniff', ...headers }
}

function toResponse(answer: Answer): Response {
  return new Response(answer.body ?? null, { status: answer.status, headers: toAnswerHeaders(answer) })
}
