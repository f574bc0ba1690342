// Prints kept requests without their secrets, for a replay on a machine without the store, such as a CI runner.
import { formatQuantity } from '../base/text.ts'
import { loadConfig } from '../gateway/config/config.ts'
import { Problem } from '../core/model/problem.ts'
import { assemble } from '../gateway/reload/assemble.ts'
import { streamKeptPages } from '../gateway/replay/kept.ts'
import { buildRecordedRequest, type RecordedRequest, renderRecording } from '../gateway/replay/recording.ts'
import type { KeptQuery } from '../store/queries.ts'
import type { KeptDelivery } from '../store/records.ts'
import { readStore } from './gateway/stored.ts'
import { noteUnknownValues } from './requests/kept.ts'
import { nothingKept } from './replay.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { cutLine } from './terminal/print.ts'

export type RecordOptions = {
  readonly last: number
  readonly hook?: string
  readonly source?: string
  readonly since?: number
}

const maxShown = 10

export async function record(context: Context, { last: limit, hook, source, since }: RecordOptions): Promise<number> {
  const loaded = loadConfig(context)
  const { config } = loaded
  noteUnknownValues(context, loaded)
  const parts = { config, ...(await assemble(context.dir, config)) }
  const removed = new Map<string, number>()
  let leftOut = 0
  const requests: RecordedRequest[] = []
  await withProgress(context, 'Recording', async () => {
    for await (const kept of readKept(context, { limit, hook, source, since })) {
      try {
        const { recorded, removed: places } = buildRecordedRequest(kept, parts)
        requests.push(recorded)
        for (const place of places) removed.set(place, (removed.get(place) ?? 0) + 1)
      } catch (error) {
        if (!(error instanceof Problem)) throw error
        leftOut += 1
      }
    }
  })
  if (requests.length === 0) context.note(nothingKept)
  context.print(renderRecording(requests.toReversed()).trimEnd())
  context.note(describe(requests.length, { removed, leftOut }))
  return 0
}

/** The kept requests of the query, the newest first. */
async function* readKept(context: Context, query: KeptQuery): AsyncGenerator<KeptDelivery> {
  const keptDeliveries = (asked: KeptQuery) => readStore(context, [], (store) => store.keptDeliveries(asked))
  for await (const page of streamKeptPages({ keptDeliveries }, query)) yield* page
}

function describe(
  count: number,
  { removed, leftOut }: { removed: ReadonlyMap<string, number>; leftOut: number },
): string {
  const places = [...removed].toSorted(([, one], [, other]) => other - one)
  const shown = places.slice(0, maxShown).map(([place, times]) => `${cutLine(place, 60)} (${times})`)
  const more = places.length > maxShown ? ` and ${places.length - maxShown} other places` : ''
  return [
    `Recorded ${formatQuantity(count, 'request')}.`,
    ...(leftOut === 0 ? [] : [`Left out ${leftOut}, which are too large or cannot be read.`]),
    ...(places.length === 0 ? [] : [`Removed: ${shown.join(', ')}${more}.`]),
    'Names, addresses and texts of people are still in it.',
  ].join(' ')
}
