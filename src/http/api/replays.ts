// Routes of the admin API for kept requests: replays, and fixtures made from them.
import type { KeptQuery } from '../../store/queries.ts'
import type Router from '@koa/router'
import type { Context } from 'koa'
import { z } from 'zod'
import { tryParseJson } from '../../base/json.ts'
import { Problem } from '../../model/problem.ts'
import { maxReplays, defaultReplays } from '../../model/replay.ts'
import type { DeliveryRecord, KeptRequest } from '../../store/records.ts'
import type { Store } from '../../store/store.ts'
import { findDelivery, findRequest } from './deliveries.ts'
import { readParameter, readRequestText } from './query.ts'
import type { Guards } from '../operator.ts'
import { answerJson } from './answer.ts'
import type { CapturedFields, ReplayReport, ShadowFields, UpdatedFixtures } from '../../model/api/replay.ts'
import type { CoverageFields } from '../../model/api/shapes.ts'

/** The maximum number of ids in one request for the decisions of the live code, and of requests in one page of a replay. */
const maxIds = 100
const maxReplayed = 25

export type AdminReplayer = {
  /** `isWanted` is called when the replay can begin: false if its client has disconnected. */
  replay(
    query: KeptQuery & { readonly ids?: readonly string[] | undefined },
    isWanted: () => boolean,
  ): Promise<ReplayReport>
  /** Runs the fixtures of a module, and writes the results into them as the expected ones. */
  updateFixtures(module: string): Promise<UpdatedFixtures>
  /** The lines of a module that its fixtures and kept requests run. */
  coverage(module: string, isWanted: () => boolean): Promise<CoverageFields>
  decideLive(ids: readonly string[]): Promise<object>
  /** Writes a fixture. */
  capture(
    stored: { record: Pick<DeliveryRecord, 'deliveryId' | 'receivedAt' | 'mappingId'>; request: KeptRequest },
    options: z.infer<typeof FixtureOptions>,
  ): Promise<CapturedFields>
  /** Mappings whose transform has a shadow. */
  shadows(): ShadowFields[]
  /** Publishes the saves that `hooks.transforms.hold` held back. */
  publish(): Promise<object>
}

export const FixtureOptions = z.strictObject({
  name: z.string().max(200).optional(),
  module: z.string().max(500).optional(),
})
const maxOptionBytes = 4_096

export function addReplayRoutes(
  router: Router,
  guards: Guards,
  { store, replayer }: { readonly store: Store; readonly replayer: AdminReplayer },
): void {
  router.post('/api/replay', guards.operate, async (ctx) => {
    const isConnected = () => !ctx.res.destroyed
    const ids = readIds(ctx, maxReplayed)
    const query = ids.length === 0 ? readKeptQuery(ctx) : { limit: ids.length, ids }
    answerJson(ctx, await replayer.replay(query, isConnected))
  })
  router.post('/api/fixtures/update', guards.admin, async (ctx) => {
    const { module } = await readFixtureOptions(ctx)
    if (module === undefined) throw new Problem('usage-invalid', 'The body must be {"module": "<module>"}.')
    answerJson(ctx, await replayer.updateFixtures(module))
  })
  router.post('/api/coverage', guards.operate, async (ctx) => {
    const module = readParameter(ctx, 'module')
    if (module === undefined) throw new Problem('usage-invalid', 'module must be a module that a mapping names.')
    answerJson(ctx, await replayer.coverage(module, () => !ctx.res.destroyed))
  })
  router.get('/api/shadows', guards.read, (ctx) => answerJson(ctx, { shadows: replayer.shadows() }))
  router.post('/api/publish', guards.admin, async (ctx) => answerJson(ctx, await replayer.publish()))
  router.post('/api/deliveries/:id/capture', guards.admin, async (ctx) => {
    const options = await readFixtureOptions(ctx)
    const record = await findDelivery(store, ctx)
    const request = await findRequest(store, record)
    answerJson(ctx, await replayer.capture({ record, request }, options))
  })
  router.post('/api/replay/live', guards.operate, async (ctx) =>
    answerJson(ctx, { outcomes: await replayer.decideLive(readIds(ctx, maxIds)) }),
  )
}

/** Throws `usage-invalid`. */
async function readFixtureOptions(ctx: Context): Promise<z.infer<typeof FixtureOptions>> {
  const text = await readRequestText(ctx, maxOptionBytes)
  const options = FixtureOptions.safeParse(text === '' ? {} : tryParseJson(text ?? ''))
  if (options.success) return options.data
  throw new Problem(
    'usage-invalid',
    'The body must be empty, or {"name": "<file name>", "module": "<module>"}, each optional.',
  )
}

/** Reads the ids in `?ids=`, separated by commas. Throws `usage-invalid` for more than `max` ids. */
function readIds(ctx: Context, max: number): string[] {
  const ids = readParameter(ctx, 'ids')?.split(',') ?? []
  if (ids.length <= max) return ids
  throw new Problem('usage-invalid', `ids: expected at most ${max} ids, found ${ids.length}.`)
}

/** `last`, `hook`, `source`, and `since`: milliseconds since the epoch, or ISO 8601. Throws `usage-invalid`. */
function readKeptQuery(ctx: Context): KeptQuery {
  const last = Number(readParameter(ctx, 'last') ?? defaultReplays)
  if (!Number.isInteger(last) || last < 1 || last > maxReplays) {
    throw new Problem('usage-invalid', `last: expected a whole number from 1 to ${maxReplays}.`)
  }
  return {
    limit: last,
    hook: readParameter(ctx, 'hook'),
    source: readParameter(ctx, 'source'),
    since: readSince(readParameter(ctx, 'since')),
  }
}

function readSince(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const moment = /^\d{10,16}$/.test(text) ? Number(text) : Date.parse(text)
  if (!Number.isNaN(moment)) return moment
  throw new Problem(
    'usage-invalid',
    'since: expected milliseconds since the epoch, or a time such as 2026-01-02T03:04:05Z.',
  )
}
