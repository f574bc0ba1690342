// Shows the fields that the gateway has learnt for the payloads of each event, and the changes of these fields.
import { readShapes } from '../gateway/deliveries/shapes/stored.ts'
import { Problem } from '../core/model/problem.ts'
import { listShapeChanges } from '../gateway/shapes/changes.ts'
import { type EventShape, readRequests } from '../gateway/shapes/event-shape.ts'
import { listPlaces } from '../gateway/shapes/places.ts'
import { streamShapeRows } from '../gateway/replay/shape-rows.ts'
import { readStore } from './gateway/stored.ts'
import { findUnknownHook, loadGeneration } from './types.ts'
import type { Context } from './terminal/context.ts'
import { cutLine, formatTime, indent, renderTable } from './terminal/print.ts'

/** `since`: in milliseconds since the epoch. */
type ShapesOptions = { readonly hook: string | undefined; readonly since: number | undefined }

const maxShown = 50

export async function shapes(context: Context, { hook, since }: ShapesOptions): Promise<number> {
  if (context.json) {
    const generation = await loadGeneration(context).catch(ignoreProblem)
    await readStore(context, undefined, async (store) => {
      for await (const row of streamShapeRows({ store, generation }, { hook, since })) context.printJson(row)
    })
    return 0
  }
  const found = await readStore(context, [], (store) => readShapes(store, hook))
  if (found.length === 0)
    context.print(
      hook === undefined
        ? 'No request yet.'
        : ((await findUnknownHook(context, hook)) ?? `No request of the hook "${cutLine(hook, 60)}" yet.`),
    )
  else if (since === undefined) context.print(renderEvents(found))
  else context.print(renderChanges(found, since))
  return 0
}

function ignoreProblem(error: unknown): undefined {
  if (!(error instanceof Problem)) throw error
}

function renderEvents(found: readonly EventShape[]): string {
  const rows = found.map((each) => {
    const { count, first, last } = readRequests(each)
    const places = String(listPlaces(each.shape).length)
    return [each.hook, each.source, each.event, String(count), places, formatTime(first), formatTime(last)]
  })
  return renderTable(['hook', 'source', 'event', 'requests', 'fields', 'first', 'last'], rows)
}

function renderChanges(found: readonly EventShape[], since: number): string {
  const changed = found.flatMap((each) => {
    const isNew = readRequests(each).first >= since
    const changes = isNew ? [] : listShapeChanges(each.shape, since)
    if (!isNew && changes.length === 0) return []
    const name = cutLine([each.hook, each.source, each.event].filter((word) => word !== '').join(' '), 200)
    const lines = changes.slice(0, maxShown).map(({ at, text }) => `${formatTime(at)}  ${text}`)
    const more = changes.length > maxShown ? [`and ${changes.length - maxShown} more`] : []
    return [
      [
        isNew ? `${name}: a new event, ${formatTime(readRequests(each).first)}` : name,
        ...[...lines, ...more].map(indent),
      ].join('\n'),
    ]
  })
  return changed.length === 0 ? 'Nothing changed.' : changed.join('\n\n')
}
