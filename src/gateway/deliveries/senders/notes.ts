// Notes requests for the records of senders, in memory, and adds the notes to the records at each write. The notes are bounded: a refused request
// is noted only if it resembles a known sender.
import type { Delivery } from '../../../core/model/delivery.ts'
import { type ProblemCode, problems } from '../../../core/model/problem.ts'
import type { Generation } from '../../generation/generation.ts'
import { type Hook, toHookLabel } from '../../../core/mapping/hook.ts'
import type { Clock, Store } from '../../../store/store.ts'
import { findResemblance, type Resemblance, toAgentName, findSenderNetwork } from './likeness.ts'
import { describeKeptReason, type RefusalRecord } from '../refused/quarantine.ts'
import type { Period } from './rhythm.ts'
import {
  addRefused,
  addSeen,
  createRecord,
  mergeRefusals,
  type NewRefusals,
  type RecordKey,
  type SenderRecord,
  toCauseName,
  addNewRefusal,
  updateRecord,
} from './record.ts'

/** The maximum number of networks of one sender that are noted between two writes. */
const maxNetworks = 100

export type SenderNotes = {
  /** Notes a request that was accepted. `mappingId`: absent if the request repeated an accepted one. */
  noteAccepted(
    delivery: Delivery,
    request: {
      readonly client: string
      readonly hook: Pick<Hook, 'expecting'>
      /** See `toHookLabel`. */
      readonly label: string
      readonly mappingId?: string | undefined
    },
  ): void
  /** Notes a refusal, if its request resembles a sender that was accepted before. `headers`: the headers of the request. */
  noteRefused(refusal: RefusalRecord, headers: Headers, generation: Generation): void
  /**
   * Adds the notes to the records. Notes that cannot be written now are kept for the next write. `downs`: the times in which the gateway did
   * not listen.
   */
  write(downs: readonly Period[]): Promise<void>
}

type NotesParts = {
  readonly store: Pick<Store, 'cursor' | 'appendAll'>
  readonly generation: () => Generation
  readonly clock: Clock
  readonly listRecords: (hook: string) => readonly SenderRecord[]
  /** Whether there are so many records that no new one may be made. */
  readonly isFull: () => boolean
  /** Called for the first request of a sender, and for the first refusal of a cause. */
  readonly onNew: () => void
}

type Headers = Readonly<Record<string, string>>

type NotedRequests = {
  readonly networks: Set<string>
  client: string
  first: number
  last: number
  count: number
  headers: Readonly<Record<string, string>>
}

/** Refusals that say nothing about the request. */
const gatewayFaults: ReadonlySet<ProblemCode> = new Set([
  'store-unavailable',
  'store-full',
  'queue-full',
  'store-locked',
  'overloaded',
  'method-not-allowed',
  'origin-denied',
])

export function createSenderNotes({ store, clock, generation, ...parts }: NotesParts): SenderNotes {
  /** The noted requests by hook, then by sender. */
  const seen = new Map<string, Map<string, NotedRequests>>()
  /** The noted requests by the ring of a mapping with `expectEvery`. */
  const seenByMapping = new Map<string, NotedRequests>()
  const refusals = new Map<SenderRecord, Map<string, NewRefusals>>()

  async function write(downs: readonly Period[]): Promise<void> {
    // the loops go over copies of the keys: under load, notes that are added during a write would keep them from ending
    for (const [hook, bySource] of seen) {
      for (const source of Array.from(bySource.keys()))
        await writeSeen({ hook, source }, { noted: bySource, name: source, downs })
    }
    for (const mapping of Array.from(seenByMapping.keys()))
      await writeSeen({ hook: '', source: '', mapping }, { noted: seenByMapping, name: mapping, downs })
    for (const [record, causes] of Array.from(refusals)) {
      for (const name of Array.from(causes.keys())) {
        const cause = causes.get(name)
        if (cause === undefined) continue
        causes.delete(name)
        await updateRecord(store, record, (before) => before && addRefused(before, cause)).catch((thrown: unknown) => {
          const later = causes.get(name)
          causes.set(name, later === undefined ? cause : mergeRefusals(cause, later))
          throw thrown
        })
      }
      if (causes.size === 0) refusals.delete(record)
    }
  }

  async function writeSeen(
    key: RecordKey,
    { noted, name, downs }: { noted: Map<string, NotedRequests>; name: string; downs: readonly Period[] },
  ): Promise<void> {
    const taken = noted.get(name)
    if (taken === undefined) return
    noted.delete(name)
    await updateRecord(store, key, (before) => {
      if (before === undefined && parts.isFull()) return undefined
      return addSeen(before ?? createRecord(key, taken.first), taken, downs)
    }).catch((thrown: unknown) => {
      const later = noted.get(name)
      noted.set(name, later === undefined ? taken : { ...later, first: taken.first, count: taken.count + later.count })
      throw thrown
    })
  }

  function note(noted: Map<string, NotedRequests>, name: string, { headers }: Delivery, client: string): boolean {
    const now = clock()
    const known = noted.get(name)
    if (known === undefined) {
      const networks = new Set(findNetwork(headers, client))
      noted.set(name, { networks, client, first: now, last: now, count: 1, headers })
      return true
    }
    known.last = now
    known.count += 1
    known.headers = headers
    if (known.client === client || known.networks.size >= maxNetworks) return false
    known.client = client
    for (const network of findNetwork(headers, client)) known.networks.add(network)
    return false
  }

  function findNetwork(headers: Headers, client: string): string[] {
    const { trustedProxies } = generation().config.server
    const isForwarded = trustedProxies.length === 0 && headers['x-forwarded-for'] !== undefined
    return [findSenderNetwork(client, { isForwarded }) ?? []].flat()
  }

  /** The sender that a refused request comes from, if it was accepted before. */
  function findRefusedSender({ hook, client, credential, trace }: RefusalRecord, headers: Headers, live: Generation) {
    if (hook === undefined) return undefined
    const known = parts.listRecords(toHookLabel(live.findHook(hook), hook) || hook)
    if (known.length === 0) return undefined
    const shown = live.senders.recognise({ headers })?.facts.name
    const alike = known.filter(({ source }) => shown === undefined || source === '' || source === shown)
    if (credential === 'hook-token' || trace.some(({ matched }) => matched)) {
      const record = alike.find(({ agents }) => Object.hasOwn(agents, toAgentName(headers))) ?? alike[0]
      return record && { record, resemblance: 'firm' as const }
    }
    const [network] = findNetwork(headers, client)
    const candidates = alike.map((record) => ({ record, resemblance: findResemblance(record, { network, headers }) }))
    return (
      candidates.find(({ resemblance }) => resemblance === 'firm') ??
      candidates.find(({ resemblance }) => resemblance === 'loose')
    )
  }

  return {
    noteAccepted(delivery, { client, hook, label, mappingId }) {
      const { verifiedBy, sender } = delivery
      const source = verifiedBy ?? (sender?.shownBy === 'headers' ? sender.facts.name : '')
      let bySource = seen.get(label)
      if (bySource === undefined) seen.set(label, (bySource = new Map()))
      const isFirst = note(bySource, source, delivery, client)
      if (isFirst && !parts.isFull() && !parts.listRecords(label).some((record) => record.source === source))
        parts.onNew()
      const ring = mappingId === undefined ? undefined : hook.expecting.get(mappingId)
      if (ring !== undefined) note(seenByMapping, ring, delivery, client)
    },
    noteRefused(refusal, headers, live) {
      const { code, requestId } = refusal
      if (gatewayFaults.has(code)) return
      const found: { record: SenderRecord; resemblance: Resemblance } | undefined = findRefusedSender(
        refusal,
        headers,
        live,
      )
      if (found === undefined) return
      const { record, resemblance } = found
      const causes = refusals.get(record) ?? new Map<string, NewRefusals>()
      refusals.set(record, causes)
      const name = toCauseName(code)
      if (record.refused[name] === undefined && !causes.has(name)) parts.onNew()
      causes.set(
        name,
        addNewRefusal(causes.get(name), { code, requestId, at: clock(), resemblance, why: findWhy(refusal, live) }),
      )
    },
    write,
  }
}

/** The reason of a refusal, in words of the gateway only: text of a payload or of a schema never enters an alert. */
function findWhy({ code, hook, error, trace }: RefusalRecord, live: Generation): string {
  // the gateway itself names the fields of the built-in hooks
  if (code === 'payload-invalid' && hook !== undefined && live.findHook(hook).kind === 'built-in')
    return describeKeptReason({ code, message: error })
  const failed =
    code === 'unauthorized' || code === 'proof-unavailable' ? trace.find(({ matched }) => !matched)?.why : undefined
  return failed ?? `${problems[code].title}.`
}
