// Watches whether payloads still have the fields that the mappings read. A change is reported to the operator when chance does not explain
// it: a new event, a field that is missing now, or a field that has another kind of value. A report contains no value of a payload.
import type { SentValue } from '../../../base/json.ts'
import { cut, toPrintableLine } from '../../../base/text.ts'
import { formatPath } from '../../../base/path-text.ts'
import { formatCommand } from '../../../base/shell.ts'
import type { Alerts } from '../../jobs/alerts.ts'
import type { Log } from '../../../base/log.ts'
import type { CompiledMapping } from '../../../core/mapping/compile.ts'
import type { Generation } from '../../generation/generation.ts'
import { readValues } from '../../../core/model/path.ts'
import { listReads, type MappingRead, mayMatch } from '../../../core/mapping/reads.ts'
import { type EventKey, type EventShape, readRequests } from '../../shapes/event-shape.ts'
import { findFieldShape } from '../../shapes/places.ts'
import { countSeen, findKind, type Kind } from '../../shapes/shape.ts'
import { maxEvents } from './stored.ts'

/** A change is reported only if at least this many requests came before it. */
const minRequests = 20
/** The minimum number of requests in a row that can show a change. */
const minInRow = 3
/** A change is reported if its requests in a row have a lower probability than this. The earlier requests give the probability of one. */
const minChance = 1e-6
/** A new event is unusual if the known events had at least this many requests on average, and hardly any of them came only once. */
const requestsOfEvent = 10
const maxSingleShare = 0.01

/** The maximum number of records, because the names of events and fields may come from requests. */
const maxRecords = 5_000
const hourMs = 3_600_000
const retryAfterMs = 300_000
const maxListed = 5

type Found = Kind | 'missing'

/** The kinds of value that one path had in the requests of one event. `row`: the kind that the newest requests in a row had, and their number. */
type PathRecord = {
  total: number
  readonly counts: Map<Found, number>
  row: { found: Found; count: number }
  isReported: boolean
}

type DriftWatch = {
  /** Begins with the shapes in the store. */
  begin(shapes: readonly EventShape[]): void
  /** Looks at a payload of an event. `deliveryId`: the delivery that had it. */
  look(key: EventKey, payload: SentValue, deliveryId: string): void
}

export type DriftParts = {
  readonly generation: () => Generation
  /** Queues a message to the operator. Resolves to false if it could not be queued now. */
  readonly alert: Alerts['alert']
  readonly log: Log
}

export function createDriftWatch({ generation, alert, log }: DriftParts): DriftWatch {
  /** The number of requests of each event, by hook. */
  const events = new Map<string, Map<string, number>>()
  const records = new Map<string, PathRecord>()
  const stored = new Map<string, EventShape>()
  const findWatchedPaths = createWatchedPathsFinder(findRecord)
  const notices = createNotices({ alert, log })

  function lookAtEvent(key: EventKey, deliveryId: string): void {
    const { hook, source, event } = key
    const known = events.get(hook) ?? new Map<string, number>()
    events.set(hook, known)
    const name = JSON.stringify([source, event])
    const before = known.get(name)
    if (before === undefined && known.size >= maxEvents) return
    known.set(name, (before ?? 0) + 1)
    if (before !== undefined || event === '' || !isUnusual(known, name) || isNamed(generation(), key)) return
    const text = `${describeHook(key)} got the event "${event}"${source === '' ? '' : ` of ${source}`} for the first time. ${describeNext(key, deliveryId)}`
    // an event that could not be reported counts as new at its next request
    notices.send(`new event ${hook} ${name}`, text, () => known.delete(name))
  }

  /** Undefined if there is no room for another record. */
  function findRecord(key: EventKey, { text, path }: MappingRead): PathRecord | undefined {
    const name = JSON.stringify([key.hook, key.source, key.event, text])
    const known = records.get(name)
    if (known !== undefined || records.size >= maxRecords) return known
    const record = createRecord(stored.get(toEventName(key)), path)
    records.set(name, record)
    return record
  }

  /** Adds a value to the record of a path. Returns whether a change of the path must be reported. */
  function lookAtPath({ read, record }: WatchedPath, payload: SentValue): boolean {
    const values = readValues(payload, read.path)
    // an empty list, or none, shows nothing about its items
    if (values.length === 0) return false
    const value = values.find((each) => each !== undefined)
    const found = value === undefined ? 'missing' : findKind(value)
    record.row = found === record.row.found ? { found, count: record.row.count + 1 } : { found, count: 1 }
    if (record.row.count === 1) record.isReported = false
    record.total += 1
    record.counts.set(found, (record.counts.get(found) ?? 0) + 1)
    return !record.isReported && isChange(record)
  }

  /** Fields of one event often change together, so one notice reports all of them. */
  function lookAtPaths(key: EventKey, payload: SentValue, deliveryId: string): void {
    const changes = findWatchedPaths(generation(), key).filter((watched) => lookAtPath(watched, payload))
    const [first, ...others] = changes
    if (first === undefined) return
    for (const { record } of changes) record.isReported = true
    const text = `${describeHook(key)}: ${describeChange(key, first)}${describeOthers(others)} ${describeNext(key, deliveryId)}`
    notices.send(`drift ${toEventName(key)}`, text, () => {
      for (const { record } of changes) record.isReported = false
    })
  }

  return {
    begin(shapes) {
      for (const shape of shapes) {
        const known = events.get(shape.hook) ?? new Map<string, number>()
        events.set(shape.hook, known)
        const name = JSON.stringify([shape.source, shape.event])
        known.set(name, (known.get(name) ?? 0) + readRequests(shape).count)
        stored.set(toEventName(shape), shape)
      }
    },
    look(key, payload, deliveryId) {
      lookAtEvent(key, deliveryId)
      lookAtPaths(key, payload, deliveryId)
    },
  }
}

type WatchedPath = { readonly mappingId: string; readonly read: MappingRead; readonly record: PathRecord }

/** Sends at most one alert an hour about each cause. If an alert cannot be queued, its cause waits some minutes. */
function createNotices({ alert, log }: Pick<DriftParts, 'alert' | 'log'>) {
  /** `isLogged`: whether the change is already in the log. `until`: no alert about this cause is sent before this time. */
  const causes = new Map<string, { until: number; isLogged: boolean }>()

  async function queue(cause: string, text: string, now: number): Promise<boolean> {
    // one subject for all: the names of hooks and events may come from requests
    const isQueued = await alert({ cause, subject: 'payloads', text: `Hookloom: ${text}` })
    if (isQueued) causes.set(cause, { until: now + hourMs, isLogged: false })
    return isQueued
  }

  return {
    /** `onFailure`: called if the change could not be reported now. */
    send(cause: string, text: string, onFailure: () => void): void {
      const now = performance.now()
      const known = causes.get(cause)
      if (known !== undefined && now < known.until) return onFailure()
      if (known?.isLogged !== true) log.warn({}, text)
      for (const [name, { until }] of causes) if (now - until >= hourMs) causes.delete(name)
      causes.set(cause, { until: now + retryAfterMs, isLogged: true })
      void queue(cause, text, now).then((isQueued) => (isQueued ? undefined : onFailure()))
    },
  }
}

/** The maximum number of events that are remembered at once: their names may come from requests. */
const maxKnown = 1_000

/** Creates a function that lists the paths that the mappings of an event need, each once, with its record. */
function createWatchedPathsFinder(findRecord: (key: EventKey, read: MappingRead) => PathRecord | undefined) {
  let latest: Generation | undefined
  const known = new Map<string, readonly WatchedPath[]>()
  return (generation: Generation, key: EventKey): readonly WatchedPath[] => {
    if (latest !== generation || known.size >= maxKnown) known.clear()
    latest = generation
    const name = toEventName(key)
    const found = known.get(name) ?? listWatchedPaths(generation, key, findRecord)
    known.set(name, found)
    return found
  }
}

function listWatchedPaths(
  generation: Generation,
  key: EventKey,
  findRecord: (key: EventKey, read: MappingRead) => PathRecord | undefined,
): WatchedPath[] {
  const wanted = new Map<string, WatchedPath>()
  for (const compiled of generation.findHook(key.hook).mappings) {
    if (!mayMatch(compiled.mapping, key)) continue
    const templates = listReads(compiled.mapping).filter(({ hasDefault }) => !hasDefault)
    for (const read of [...templates, ...listSchemaReads(compiled)]) {
      const record = wanted.has(read.text) ? undefined : findRecord(key, read)
      if (record !== undefined) wanted.set(read.text, { mappingId: compiled.id, read, record })
    }
  }
  return [...wanted.values()]
}

function listSchemaReads({ transform }: CompiledMapping): MappingRead[] {
  return (transform?.reads ?? []).map((path) => ({
    field: 'the schema in the transform',
    text: formatPath(path),
    path,
    hasDefault: false,
  }))
}

/** The record begins with the counts of the store, unless the path leads through an array, whose items are not counted per request. */
function createRecord(shape: EventShape | undefined, path: MappingRead['path']): PathRecord {
  const record: PathRecord = { total: 0, counts: new Map(), row: { found: 'missing', count: 0 }, isReported: false }
  const place = shape && path.every((step) => typeof step === 'string') ? findFieldShape(shape.shape, path) : undefined
  if (shape === undefined || place === undefined) return record
  const { count } = readRequests(shape)
  record.total = count
  for (const [kind, seen] of place.kinds) record.counts.set(kind, seen.count)
  record.counts.set('missing', Math.max(0, count - countSeen(place)))
  return record
}

function isChange({ total, counts, row }: PathRecord): boolean {
  const before = total - row.count
  if (row.count < minInRow || before < minRequests) return false
  const chance = ((counts.get(row.found) ?? 0) - row.count + 1) / (before + 2)
  return chance ** row.count < minChance
}

/** Whether a new event is unusual. By the Good-Turing estimate, its chance is the share of the requests whose event came only once. */
function isUnusual(known: ReadonlyMap<string, number>, name: string): boolean {
  const others = [...known].filter(([other]) => other !== name).map(([, count]) => count)
  const total = others.reduce((sum, count) => sum + count, 0)
  const singles = others.filter((count) => count === 1).length
  return total >= Math.max(minRequests, requestsOfEvent * others.length) && singles <= maxSingleShare * total
}

/** Whether a mapping names the event, and so expects it. */
function isNamed(generation: Generation, { hook, event }: EventKey): boolean {
  return generation.findHook(hook).mappings.some(({ match }) => [match.event].flat().includes(event))
}

function toEventName({ hook, source, event }: EventKey): string {
  return JSON.stringify([hook, source, event])
}

function describeHook({ hook }: EventKey): string {
  return hook === '*' ? 'the mappings without a path' : `the hook "${cut(toPrintableLine(hook), 100)}"`
}

function describeChange({ event }: EventKey, { mappingId, read, record: { counts, row } }: WatchedPath): string {
  const usual = [...counts].filter(([kind]) => kind !== row.found).toSorted(([, one], [, other]) => other - one)
  const before = usual[0]?.[0] ?? 'missing'
  const requests = `${row.count} requests${event === '' ? '' : ` of the event "${event}"`}`
  return (
    `${describeNow(read, row.found, 120)} in the last ${requests}; before, it was ${describeFound(before)}. ` +
    `${read.field} of the mapping "${cut(toPrintableLine(mappingId), 100)}" reads it.`
  )
}

/** Describes all changes except the first one. */
function describeOthers(others: readonly WatchedPath[]): string {
  if (others.length === 0) return ''
  const listed = others.slice(0, maxListed - 1).map(({ read, record }) => describeNow(read, record.row.found, 60))
  const more = others.length - listed.length
  return ` Also, ${listed.join(', ')}${more === 0 ? '' : `, and ${more} more changed`}.`
}

function describeNow({ text }: MappingRead, found: Found, maxChars: number): string {
  return `"${cut(toPrintableLine(text), maxChars)}" ${found === 'missing' ? 'is missing' : `is ${describeFound(found)}`}`
}

function describeFound(found: Found): string {
  if (found === 'missing' || found === 'null') return found
  return /^[ao]/.test(found) ? `an ${found}` : `a ${found}`
}

function describeNext({ hook }: EventKey, deliveryId: string): string {
  const capture = formatCommand`hookloom capture ${deliveryId}`
  const shapes = hook === '*' ? 'hookloom shapes --since 1d' : formatCommand`hookloom shapes --since 1d ${hook}`
  return `"${capture}" makes the request a fixture, if it is kept; "${shapes}" shows what changed.`
}
