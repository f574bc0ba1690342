// Finds an id as people type it: a whole id, a unique prefix of one, or "last".
import { Problem } from '../../core/model/problem.ts'
import type { StoreReader } from '../../store/store.ts'
import type { Context } from '../terminal/context.ts'
import { cutLine, renderTable, formatTime } from '../terminal/print.ts'
import { readStore } from './stored.ts'

const newest = 'last'
const maxIdsShown = 10
/** The maximum number of ids to read for one prefix: a delivery with `forEach` has one run for each item of its array. */
export const maxIdsRead = 1_000

/**
 * The id of the delivery or run that the user named. `last` is the newest delivery. A prefix that several runs of one delivery share
 * selects that delivery. An unknown id is returned unchanged. Throws `conflict` with the candidates if the prefix fits several deliveries,
 * and `not-found` for `last` if there is no delivery.
 */
export async function findId(context: Context, given: string): Promise<string> {
  if (given === newest) {
    const [delivery] = await readStore(context, [], (store) => store.deliveries({ limit: 1 }))
    if (delivery === undefined) throw new Problem('not-found', 'There is no delivery yet.')
    return delivery.deliveryId
  }
  return readStore(context, given, async (store) => {
    const found = await store.idsFrom({ prefix: given, limit: maxIdsRead })
    if (found.length === 0 || found.some(({ id }) => id === given)) return given
    const targets = [...new Set(found.map(({ id, deliveryId }) => deliveryId ?? id))]
    const [target = given] = targets
    if (targets.length === 1) return found.length === 1 ? (found[0]?.id ?? target) : target
    throw toAmbiguousIdProblem(
      given,
      await Promise.all(targets.slice(0, maxIdsShown + 1).map((id) => readCells(store, id))),
    )
  })
}

/** Like `findId`, among the ids of a list that is sorted oldest first. */
export function findIdAmong(ids: readonly string[], given: string): string {
  if (given === newest) return ids.at(-1) ?? given
  const found = ids.filter((id) => id.startsWith(given))
  if (found.length === 0 || found.includes(given)) return given
  const [only = given] = found
  if (found.length === 1) return only
  throw toAmbiguousIdProblem(
    given,
    found.slice(0, maxIdsShown + 1).map((id) => [id]),
  )
}

async function readCells(store: StoreReader, id: string): Promise<string[]> {
  const delivery = await store.delivery(id)
  if (delivery !== undefined) return [id, formatTime(delivery.receivedAt), delivery.hook, delivery.state]
  const job = await store.job(id)
  return job === undefined ? [id] : [id, formatTime(job.createdAt), job.planned.kind, job.state]
}

function toAmbiguousIdProblem(given: string, rows: readonly (readonly string[])[]): Problem {
  const shown = rows.slice(0, maxIdsShown)
  const [, ...lines] = renderTable(['', '', '', ''].slice(0, Math.max(...rows.map((row) => row.length))), shown).split(
    '\n',
  )
  const more = rows.length > maxIdsShown ? ['…'] : []
  const sentence = `Several ids begin with "${cutLine(given, 60)}". Give more of the id that you mean.`
  return new Problem('conflict', sentence, { frame: [...lines, ...more].join('\n') })
}
