// The output of `list --follow`: one line for each delivery that is new or changed, like the rows of the page.
import colors from 'picocolors'
import { z } from 'zod'
import { tryParseJson } from '../../base/json.ts'
import { Problem } from '../../core/model/problem.ts'
import type { Context } from '../terminal/context.ts'
import { cutLine } from '../terminal/print.ts'
import { followStream, type StreamEvent } from './stream.ts'

const Row = z.looseObject({
  deliveryId: z.string(),
  receivedAt: z.string(),
  hook: z.string(),
  source: z.string().nullable(),
  event: z.string().nullable(),
  mappingId: z.string().nullable(),
  state: z.string(),
  code: z.string().nullable(),
  became: z.array(z.object({ kind: z.string(), sessionKey: z.string() })),
  jobs: z.object({ dead: z.number(), failing: z.number(), done: z.number(), queued: z.number(), running: z.number() }),
  doneMs: z.number().nullable(),
  waits: z.string().optional(),
})
type Row = z.infer<typeof Row>

type FollowFilters = { readonly [Name in 'state' | 'hook' | 'source' | 'search']?: string | undefined }

/** Opens the stream. Returns a function that prints the changes since then, until SIGINT. With `--json`, it prints the rows as the API returns
 * them. */
export async function openFollow(context: Context, filters: FollowFilters): Promise<() => Promise<void>> {
  const ended = new AbortController()
  const events = followStream(context, ended.signal)
  // the first event is always `status`: the changes after it are in the stream
  await events.next()
  return async () => {
    const stop = () => ended.abort()
    process.once('SIGINT', stop)
    try {
      for await (const event of events) printChanges(context, event, filters)
    } finally {
      process.off('SIGINT', stop)
    }
  }
}

function printChanges(context: Context, { event, data }: StreamEvent, filters: FollowFilters): void {
  if (event === 'reset') context.note('Some changes were missed. "hookloom list" shows them.')
  if (event !== 'deliveries') return
  const rows = z.array(Row).safeParse(tryParseJson(data))
  if (!rows.success) throw new Problem('gateway-unreachable', 'The gateway is of another version. Restart it.')
  for (const row of rows.data.filter((each) => isSelected(each, filters))) {
    if (context.json) context.printJson(row)
    else context.print(renderRow(row))
  }
}

function isSelected(row: Row, { state, hook, source, search }: FollowFilters): boolean {
  const word = search?.trim().toLowerCase() ?? ''
  const searched = [row.hook, row.source, row.event, row.mappingId].join('\n').toLowerCase()
  return (
    (state ?? row.state) === row.state &&
    (hook ?? row.hook) === row.hook &&
    (source === undefined || source === row.source) &&
    (searched.includes(word) || row.deliveryId.startsWith(word))
  )
}

function renderRow({
  receivedAt,
  state,
  hook,
  source,
  event,
  code,
  became,
  jobs,
  doneMs,
  waits,
  deliveryId,
}: Row): string {
  const action = became.map(({ kind, sessionKey }) => (kind === 'wake' ? kind : `${kind} ${sessionKey}`)).join(', ')
  const outcome = jobs.dead > 0 ? 'dead' : state
  const paint = outcome === 'dead' || outcome === 'parked' ? colors.red : colors.green
  const progress = jobs.failing > 0 ? 'tried again' : doneMs === null ? (waits ?? '') : `done after ${doneMs} ms`
  const cells = [hook, source ?? '', event ?? '', action || (code ?? ''), progress].map((cell) => cutLine(cell, 80))
  const text = cells.filter((cell) => cell !== '').join('  ')
  return `${colors.dim(receivedAt.slice(11, 19))}  ${paint(outcome.padEnd(8))}  ${text}  ${colors.dim(deliveryId)}`
}
