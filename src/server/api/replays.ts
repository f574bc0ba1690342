// The part of the admin port that replays kept deliveries.
import type Router from '@koa/router'
import type { Context, Middleware } from 'koa'
import { Problem } from '../../model/problem.ts'
import { mostReplays, usualReplays } from '../../model/replay.ts'
import type { KeptQuery } from '../../store/records.ts'
import { reply } from './reply.ts'
import type { ReplayReport } from './replay-types.ts'

/** Deliveries of one question for what the live code decides. */
const mostIds = 100

/** Its answers are JSON. */
export type ReplayerOfAdmin = {
  replay(query: KeptQuery): Promise<ReplayReport>
  decideLive(ids: readonly string[]): Promise<object>
  /** Makes live what `hooks.transforms.hold` held back. */
  publish(): Promise<object>
}

/** `operator`: refuses everybody else. */
export function addReplayRoutes(router: Router, operator: Middleware, replayer: ReplayerOfAdmin): void {
  router.post('/api/replay', operator, async (ctx) => reply(ctx, await replayer.replay(toKeptQuery(ctx.query))))
  router.post('/api/publish', operator, async (ctx) => reply(ctx, await replayer.publish()))
  router.post('/api/replay/live', operator, async (ctx) =>
    reply(ctx, { outcomes: await replayer.decideLive(toIds(ctx)) }),
  )
}

/** `?ids=`, with commas between them. */
function toIds({ query: { ids } }: Context): string[] {
  return typeof ids === 'string' ? ids.split(',').slice(0, mostIds) : []
}

/** `last`, `hook`, `source`, and `since`: milliseconds since the epoch, or ISO 8601. Throws `usage-invalid`. */
function toKeptQuery(query: Readonly<Record<string, unknown>>): KeptQuery {
  const toText = (name: string) => (typeof query[name] === 'string' ? query[name] : undefined)
  const last = Number(toText('last') ?? usualReplays)
  if (!Number.isInteger(last) || last < 1 || last > mostReplays) {
    throw new Problem('usage-invalid', `last: expected a whole number from 1 to ${mostReplays}.`)
  }
  return { limit: last, hook: toText('hook'), source: toText('source'), since: toMoment(toText('since')) }
}

function toMoment(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const moment = /^\d{10,16}$/.test(text) ? Number(text) : Date.parse(text)
  if (!Number.isNaN(moment)) return moment
  throw new Problem(
    'usage-invalid',
    'since: expected milliseconds since the epoch, or a time such as 2026-01-02T03:04:05Z.',
  )
}
