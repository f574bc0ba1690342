// Shows how the results of shadows differ from those of the live code.
import type { ShadowFields } from '../model/api/replay.ts'
import { askAdmin } from './gateway/gateway.ts'
import type { Context } from './terminal/context.ts'
import { cutLine, formatTime, indent, renderTable } from './terminal/print.ts'

const maxShown = 10

/** `mappingId`: shows only the shadow of this mapping, with all differences that the gateway lists. */
export async function shadow(context: Context, { mappingId }: { mappingId: string | undefined }): Promise<number> {
  const { shadows } = await askAdmin(context, 'GET /api/shadows')
  const found = shadows.filter((each) => mappingId === undefined || each.mappingId === mappingId)
  if (context.json) for (const each of found) context.printJson(each)
  else if (found.length === 0) {
    const what = mappingId === undefined ? 'No mapping has' : `The mapping "${cutLine(mappingId, 60)}" does not have`
    context.print(`${what} a transform with a shadow. "transform": {"module": "x.ts", "shadow": "x.next.ts"} sets one.`)
  } else
    for (const each of found)
      context.print(renderShadow(each, mappingId === undefined ? maxShown : Number.POSITIVE_INFINITY))
  return 0
}

function renderShadow(found: ShadowFields, max: number): string {
  const { mappingId, module, shadow: next, problem, since, runs, dropped, counts, differences } = found
  const counted = Object.entries(counts).map(([name, count]) => `${count} ${name}`)
  const lines =
    problem === null
      ? [
          `${runs} runs since ${formatTime(Date.parse(since))}${runs === 0 ? '' : `: ${counted.join(', ')}`}`,
          ...(dropped === 0 ? [] : [`${dropped} requests without a run: a shadow has a tenth of the time`]),
        ]
      : [`does not run: ${problem}`]
  const rows = differences
    .slice(0, max)
    .map(({ deliveryId, receivedAt, class: name, path }) => [
      deliveryId,
      formatTime(Date.parse(receivedAt)),
      name,
      cutLine(path, 80),
    ])
  const table =
    rows.length === 0 ? [] : renderTable(['delivery', 'received', 'class', 'first difference'], rows).split('\n')
  const title = `${cutLine(mappingId, 100)}: ${cutLine(module, 100)} → ${cutLine(next, 100)}`
  return [title, ...[...lines, ...table].map((line) => indent(line))].join('\n')
}
