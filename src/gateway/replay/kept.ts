// Reads kept requests in pages, because all of them may not fit into memory.
import type { KeptQuery } from '../../store/queries.ts'

/** The maximum number of requests in memory at a time. */
const pageSize = 25

/** Yields the pages of a query, with the newest request first, until `query.limit` requests were read. */
export async function* streamKeptPages<Kept extends { readonly deliveryId: string }>(
  store: { keptDeliveries(query: KeptQuery): Promise<readonly Kept[]> },
  query: KeptQuery,
): AsyncGenerator<readonly Kept[], void> {
  let { before } = query
  for (let left = query.limit; left > 0; left -= pageSize) {
    const page = await store.keptDeliveries({ ...query, before, limit: Math.min(left, pageSize) })
    yield page
    if (page.length < pageSize) return
    before = page.at(-1)?.deliveryId
  }
}
