// Watches the senders: notes who is accepted and who is refused, and reports to the operator which senders are refused or silent now. Nothing
// is read or written during a request. Once a minute, each gateway adds its notes to the records in the store, and one gateway judges the
// records.
import { toErrorName } from '../../../base/exceptions.ts'
import { groupBy } from '../../../base/group.ts'
import { yieldToEventLoop } from '../../../base/serial.ts'
import type { Alerts } from '../../jobs/alerts.ts'
import type { Log } from '../../../base/log.ts'
import type { Generation } from '../../generation/generation.ts'
import { toHookLabel } from '../../../core/mapping/hook.ts'
import type { Duty } from '../../../store/named-leases.ts'
import type { Clock, Store } from '../../../store/store.ts'
import type { OnRepeated, OnStored } from '../listeners.ts'
import type { Period } from './rhythm.ts'
import { type JudgeFacts, judge, toSenderKey } from './judge.ts'
import { createSenderNotes, type SenderNotes } from './notes.ts'
import { createRecord, cutFuture, forgetRecord, readRecords, type SenderRecord, updateRecord } from './record.ts'

const everyMs = 60_000
/** A new sender, or a new cause of refusals, is written after this shorter time. */
const soonMs = 1_000
/** If the watch pauses for longer than this, the gateway did not listen in that time. */
const maxPauseMs = 3 * everyMs
const maxDowns = 50
const keptMs = 29 * 86_400_000
/**
 * The maximum number of records. The configuration limits hooks and senders; this limit is for a configuration that changes for years. Records
 * that are no longer judged make room for new ones.
 */
const maxRecords = 1_000
const forgottenAfterMs = 90 * 86_400_000
const watchCursor = 'senders/watch'
const looksBeforeCut = 60

export type SenderWatch = Pick<SenderNotes, 'noteAccepted' | 'noteRefused'> & {
  readonly onStored: OnStored
  readonly onRepeated: OnRepeated
  /** Adds the notes to the records in the store and judges all records. Runs once a minute after `start`. Never rejects. */
  look(): Promise<void>
  /** Returns a function that writes the notes and ends the watch. */
  start(): () => Promise<void>
}

type WatchParts = {
  readonly store: Pick<Store, 'cursor' | 'cursors' | 'appendAll'>
  readonly generation: () => Generation
  readonly clock: Clock
  /** With several gateways, only one judges the records. */
  readonly duty: Duty
  /** Queues a message to the operator. Resolves to false if it could not be queued now. */
  readonly alert: Alerts['alert']
  readonly log: Log
}

export function createSenderWatch({ store, generation, clock, duty, alert, log }: WatchParts): SenderWatch {
  /** The records in the store, as last read. */
  let records: readonly SenderRecord[] = []
  let byHook: ReadonlyMap<string, readonly SenderRecord[]> = new Map()
  let downs: readonly Period[] = []
  let isFullLogged = false
  /** The number of looks in a row that found records in the future. */
  let looksBehind = 0
  let looking: Promise<void> = Promise.resolve()
  let timer: NodeJS.Timeout | undefined
  let soon: NodeJS.Timeout | undefined
  const notes = createSenderNotes({
    store,
    generation,
    clock,
    listRecords: (hook) => byHook.get(hook) ?? [],
    isFull: () => records.length >= maxRecords,
    onNew: () => {
      if (timer !== undefined) soon ??= setTimeout(() => ((soon = undefined), void look()), soonMs).unref()
    },
  })

  function look(): Promise<void> {
    looking = looking.then(lookOnce).catch((thrown: unknown) => {
      log.warn({ thrown: toErrorName(thrown) }, 'the records of the senders could not be read or written')
    })
    return looking
  }

  async function lookOnce(): Promise<void> {
    if (duty.isHeld()) await noteListening()
    downs = (await readListening()).downs
    await notes.write(downs)
    await loadRecords()
    if (!duty.isHeld() || !generation().config.hooks.enabled) return
    await cutRecords()
    if (records.length >= maxRecords) await makeRoom()
    await addExpected()
    for (const record of records) {
      await judgeRecord(record)
      // a sender that has been silent for weeks takes some milliseconds: without this pause, fifty of them would block every request
      await yieldToEventLoop()
    }
  }

  async function loadRecords(): Promise<void> {
    records = await readRecords(store)
    const own = records.filter(({ mapping }) => mapping === undefined)
    byHook = groupBy(own, ({ hook }) => hook)
  }

  async function readListening(): Promise<{ text: string | undefined; at: number; downs: readonly Period[] }> {
    const text = await store.cursor(watchCursor)
    // as: only this file writes the cursor
    const { at, downs: known } = JSON.parse(text ?? `{"at":${clock()},"downs":[]}`) as { at: number; downs: Period[] }
    return { text, at, downs: known }
  }

  async function noteListening(): Promise<void> {
    const now = clock()
    const { text, at, downs: known } = await readListening()
    const added = now - at > maxPauseMs ? [{ from: at, to: now }] : []
    // a time that ends in the future was noted while the clock was wrong
    const past = known.flatMap(({ from, to }) => (from < now ? [{ from, to: Math.min(to, now) }] : []))
    const next = { at: now, downs: [...past.filter(({ to }) => now - to < keptMs), ...added].slice(-maxDowns) }
    await store.appendAll([], { name: watchCursor, from: text, to: JSON.stringify(next) })
  }

  /** Corrects what was written while the clock was ahead. The clock may also be behind now: so this is certain only after an hour of looks. */
  async function cutRecords(): Promise<void> {
    const now = clock()
    const wrong = records.filter((record) => cutFuture(record, now) !== undefined)
    looksBehind = wrong.length > 0 ? looksBehind + 1 : 0
    if (looksBehind < looksBeforeCut) return
    for (const record of wrong) await updateRecord(store, record, (before) => before && cutFuture(before, now))
    if (wrong.length > 0) await loadRecords()
  }

  async function makeRoom(): Promise<void> {
    const isForgotten = (record: SenderRecord) =>
      clock() - record.last > forgottenAfterMs && gatherFacts(record) === undefined
    const forgotten = records.filter(isForgotten)
    for (const record of forgotten) await forgetRecord(store, record, isForgotten)
    if (forgotten.length > 0) return loadRecords()
    if (!isFullLogged) log.warn({}, `there are records of ${maxRecords} senders: further senders are not watched`)
    isFullLogged = true
  }

  /** A mapping that expects requests is watched as soon as it is in the configuration. */
  async function addExpected(): Promise<void> {
    const known = new Set(records.map(({ mapping }) => mapping))
    for (const { identity, mapping } of generation().mappings) {
      const key = { hook: '', source: '', mapping: identity.ring }
      if (mapping.expectEvery === undefined || known.has(identity.ring)) continue
      await updateRecord(store, key, (before) => before ?? createRecord(key, clock()))
    }
  }

  async function judgeRecord(record: SenderRecord): Promise<void> {
    const facts = gatherFacts(record)
    if (facts === undefined) return
    for (const { notice } of judge(record, facts)) {
      if (notice !== undefined) {
        if (!(await alert({ ...notice, subject: `sender ${toSenderKey(record)}` }))) continue
        log.warn({ hook: record.hook, source: record.source }, notice.text)
      }
      await updateRecord(
        store,
        record,
        (before) => before && judge(before, facts).find((other) => other.notice?.cause === notice?.cause)?.after,
      )
    }
  }

  /** The facts by which a record is judged; undefined if it is no longer judged. */
  function gatherFacts(record: SenderRecord): JudgeFacts | undefined {
    const now = clock()
    if (record.mapping !== undefined) {
      const found = generation().mappings.find(
        ({ identity, mapping }) => mapping.expectEvery !== undefined && identity.ring === record.mapping,
      )
      if (found === undefined) return undefined
      return { now, downs, name: found.id, expectation: found.mapping.expectEvery || 'off' }
    }
    const name = generation().senders.find(record.source)?.label ?? record.source
    if (now - record.last > forgottenAfterMs) return undefined
    const hook = generation().findHook(record.hook)
    const isExpected = hook.mappings.some(({ mapping }) => mapping.expectEvery !== undefined)
    const isGone = hook.kind === 'unknown' && record.hook !== '*'
    return { now, downs, name, expectation: isExpected || isGone ? 'off' : 'learnt' }
  }

  async function stop(): Promise<void> {
    clearInterval(timer)
    timer = undefined
    clearTimeout(soon)
    await looking
    await notes.write(downs).catch(() => undefined)
  }

  return {
    noteAccepted: notes.noteAccepted,
    noteRefused: notes.noteRefused,
    // a request that was refused when it arrived is no sign that its sender is let in
    onStored(stored) {
      if (stored.kind !== 'new' || stored.isLate) return
      const { delivery, hook, client, settlement } = stored
      const label = toHookLabel(hook, delivery.path)
      notes.noteAccepted(delivery, { hook, label, client, mappingId: settlement.mappingId })
    },
    onRepeated({ delivery, hook, client, isLate }) {
      if (!isLate) notes.noteAccepted(delivery, { hook, label: toHookLabel(hook, delivery.path), client })
    },
    look,
    start() {
      void loadRecords().catch(() => undefined)
      timer = setInterval(() => void look(), everyMs).unref()
      return stop
    },
  }
}
