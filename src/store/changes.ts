// The ids of changed deliveries, in order, for the stream. A change costs one write into an array; the last ten thousand are kept.
import type { Store } from './store.ts'

const maxKept = 10_000

export type Changes = {
  /** The number of all changes. */
  readonly count: () => number
  /** Notes that a delivery changed. `id`: the id of the delivery or of one of its jobs. */
  noteChange(id: string): void
  /** The ids that changed after the first `place` changes, without repetitions; undefined if they are no longer known. */
  since(place: number): ReadonlySet<string> | undefined
}

export function createChanges(): Changes {
  const ids: string[] = []
  let latest = 0
  return {
    count: () => latest,
    noteChange(id) {
      ids[latest % maxKept] = id
      latest += 1
    },
    since(place) {
      if (place > latest || latest - place > maxKept) return undefined
      const found = new Set<string>()
      for (let at = place; at < latest; at += 1) found.add(ids[at % maxKept] ?? '')
      return found
    },
  }
}

/** The same store, which also notes each write that changes a list or the view of a delivery. */
export function withChanges<Kind extends Store>(store: Kind, { noteChange }: Pick<Changes, 'noteChange'>): Kind {
  return {
    ...store,
    async append(delivery) {
      const appended = await store.append(delivery)
      if (appended.kind === 'stored') noteChange(delivery.id)
      return appended
    },
    async appendAll(deliveries, move) {
      const appended = await store.appendAll(deliveries, move)
      if (appended === 'moved') return appended
      for (const [index, { kind }] of appended.entries()) if (kind === 'stored') noteChange(deliveries[index]?.id ?? '')
      return appended
    },
    settle: (id, settlement, move) => noteIfWritten(store.settle(id, settlement, move), id),
    async claim(query) {
      const onEnded: typeof query.onEnded = (ended) => {
        for (const { id } of ended) noteChange(id)
        query.onEnded?.(ended)
      }
      const jobs = await store.claim({ ...query, onEnded })
      for (const { deliveryId } of jobs) if (deliveryId !== undefined) noteChange(deliveryId)
      return jobs
    },
    // a job without room in a budget is queued again
    async reserve(job, reservations) {
      const reserved = await store.reserve(job, reservations)
      if (reserved.kind === 'waits') noteChange(job.id)
      return reserved
    },
    report: (job, report) => noteIfWritten(store.report(job, report), job.id),
    async noteRepeats(repeats) {
      await store.noteRepeats(repeats)
      for (const { deliveryId } of repeats) noteChange(deliveryId)
    },
    requeue: (id) => noteIfWritten(store.requeue(id), id),
    drop: (id) => noteIfWritten(store.drop(id), id),
    async tryNow(id) {
      const tried = await store.tryNow(id)
      if (tried.length > 0) noteChange(id)
      return tried
    },
    async endJob(id, ending) {
      const ended = await store.endJob(id, ending)
      if (ended !== undefined) noteChange(id)
      return ended
    },
  }

  async function noteIfWritten<Result extends boolean | 'moved'>(
    written: Promise<Result>,
    id: string,
  ): Promise<Result> {
    const isWritten = await written
    if (isWritten === true) noteChange(id)
    return isWritten
  }
}
