// The handlers of the calls of the admin API, and their routes.
import type Router from '@koa/router'
import type { Context } from 'koa'
import type { z } from 'zod'
import type { CallAnswer, CallName, CallParams, CallQuery, CallSchema } from '../../../model/api/ask.ts'
import type { Call } from '../../../model/api/call.ts'
import type { Generation } from '../../generation/generation.ts'
import type { Guard } from '../operator.ts'
import { answerJson } from './answer.ts'
import { type QueryTexts, readCallBody } from './query.ts'

/** `body` reads the body; `ifEmpty`: what counts if there is none. Throws `usage-invalid` and `body-too-large`. */
export type CallRequest<Name extends CallName> = {
  readonly params: CallParams<Name>
  readonly query: QueryTexts<CallQuery<Name>>
  readonly body: (ifEmpty?: string) => Promise<z.output<CallSchema<Name>>>
  readonly ctx: Context
}

/** A handler returns the answer, or undefined if it has sent an answer itself. */
type Handled<Name extends CallName> = CallAnswer<Name> | undefined
export type Handlers = {
  readonly [Name in CallName]: (request: CallRequest<Name>) => Handled<Name> | Promise<Handled<Name>>
}

type RouteParts = { readonly guard: Guard; readonly generation: () => Pick<Generation, 'config'> }

export function addRoutes(router: Router, handlers: Partial<Handlers>, { guard, generation }: RouteParts): void {
  for (const [name, handler] of Object.entries(handlers)) {
    // as: each handler gets what its call declares
    const handle = handler as (request: object) => Handled<CallName> | Promise<Handled<CallName>>
    const [method = '', path = ''] = name.split(' ')
    router.register(path.replace(/\{(\w+)\}/, ':$1'), [method], async (ctx) => {
      // loaded at the first request, because the schemas take time to load
      const { calls } = await import('../../../model/api/calls.ts')
      // as: `Handlers` has only names of calls
      const call: Call = calls[name as CallName]
      const { params, query } = ctx
      const body = (ifEmpty?: string) => call.body && readCallBody(ctx, call.body, generation().config.server, ifEmpty)
      const run = async () => {
        const answer = await handle({ params, query, body, ctx })
        if (answer !== undefined) answerJson(ctx, answer)
      }
      await guard(ctx, call, run)
    })
  }
}
