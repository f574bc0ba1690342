// The audit log. Each entry contains the hash of the previous entry, so a changed entry no longer matches its own hash or the next entry.
import { hash } from 'node:crypto'
import type { JsonObject, JsonValue } from '../base/json.ts'
import { cut, toPrintableLine } from '../base/text.ts'
import type { AuditFields } from '../model/api/audit.ts'
import type { Row } from './rows.ts'

/** The part of an entry that its writer knows. The store adds the number, the time and the hashes. */
export type NewAuditEntry = Pick<AuditFields, 'by' | 'act' | 'outcome'> &
  Partial<Pick<AuditFields, 'gateway' | 'target' | 'details' | 'reason' | 'began'>>

/** A row. `at`: milliseconds since the epoch. `entry`: `AuditFields` without `hash`, in canonical form. */
export type AuditRow = {
  readonly number: number
  readonly at: number
  readonly entry: string
  readonly hash: string
}

/**
 * Entries, oldest first. With `after`, the first `limit` entries that follow that number. Without `after`, the newest `limit` entries; with `before`,
 * the newest `limit` of those before that number.
 */
export type AuditQuery = {
  readonly limit: number
  readonly after?: number | undefined
  readonly before?: number | undefined
  /** Milliseconds since the epoch: only entries of this moment and later. */
  readonly since?: number | undefined
}

export type AuditReader = {
  auditLog(query: AuditQuery): Promise<AuditRow[]>
}

/** The part of the store that writes the audit log. All owners of a store add to one chain. */
export type AuditKeeper = {
  /** Adds an entry. Its number is one more than that of the newest entry. */
  audit(entry: NewAuditEntry): Promise<AuditRow>
  /** Deletes the entries before the first one that is not older than `olderThanMs`. The newest entry stays. Returns how many were deleted. */
  pruneAudit(olderThanMs: number): Promise<number>
}

const maxChars = 500

export function toAuditRow({ number, at, entry, hash: given }: Row): AuditRow {
  return { number: Number(number), at: Number(at), entry: String(entry), hash: String(given) }
}

/** `last`: the newest row of the log. */
export function chainEntry(
  given: NewAuditEntry,
  at: number,
  last: Pick<AuditRow, 'number' | 'hash'> | undefined,
): AuditRow {
  const { by, act, outcome, gateway = null, target = null, details = {}, reason = null, began = null } = given
  const number = (last?.number ?? 0) + 1
  const entry = toCanonicalJson({
    number,
    at: new Date(at).toISOString(),
    gateway: gateway && toLine(gateway),
    by: { kind: by.kind, name: toLine(by.name) },
    act: toLine(act),
    target: target && toLine(target),
    details: Object.fromEntries(Object.entries(details).map(([name, text]) => [toLine(name), toLine(text)])),
    outcome,
    reason: reason && toLine(reason),
    began,
    previous: last?.hash ?? null,
  } satisfies Omit<AuditFields, 'hash'>)
  return { number, at, entry, hash: hashEntry(entry) }
}

/** SHA-256 of the canonical form in UTF-8, in hex. */
function hashEntry(entry: string): string {
  return hash('sha256', entry, 'hex')
}

/**
 * Makes one line of at most `maxChars` that a terminal can show. Replaces halves of surrogate pairs: UTF-8 cannot encode them, and RFC 8785 refuses
 * them.
 */
function toLine(text: string): string {
  return cut(toPrintableLine(text.slice(0, 4 * maxChars)).replaceAll(/\p{Surrogate}/gu, '\uFFFD'), maxChars)
}

/** RFC 8785: names in the order of their UTF-16 units, without white space; texts and whole numbers as `JSON.stringify` writes them. */
function toCanonicalJson(value: JsonValue): string {
  return JSON.stringify(value, (_name, each: JsonValue) =>
    typeof each === 'object' && each !== null && !Array.isArray(each) ? sortNames(each) : each,
  )
}

function sortNames(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
}

/** An entry that was changed, or that does not follow from the entry before it. */
export type AuditBreak = { readonly number: number; readonly why: string }

/**
 * Checks rows in the order of their numbers. The first row of a log need not be number 1, because retention deletes the oldest entries; it
 * contains the hash of the entry that was deleted last. Somebody who can write the store can remove the oldest or the newest entries, or write new
 * hashes for all entries, unnoticed. To find this, compare hashes with a copy that is kept elsewhere, such as the log lines of the entries.
 */
export function createChainCheck(): (row: AuditRow) => AuditBreak | undefined {
  let last: AuditRow | undefined
  return (row) => {
    const why = findBreak(row, last)
    last = row
    return why === undefined ? undefined : { number: row.number, why }
  }
}

const rowsAtOnce = 500

/** `first`, `last`: the first and the last row that fit. */
export type ChainReport = {
  readonly first: AuditRow | undefined
  readonly last: AuditRow | undefined
  readonly broken: AuditBreak | undefined
}

/** Checks the whole log in order. Stops at the first entry that does not fit. */
export async function checkChain(store: AuditReader): Promise<ChainReport> {
  const checkNext = createChainCheck()
  let first: AuditRow | undefined
  let last: AuditRow | undefined
  for (;;) {
    const rows = await store.auditLog({ limit: rowsAtOnce, after: last?.number ?? Number.MIN_SAFE_INTEGER })
    for (const row of rows) {
      const broken = checkNext(row)
      if (broken !== undefined) return { first, last, broken }
      first ??= row
      last = row
    }
    if (rows.length < rowsAtOnce) return { first, last, broken: undefined }
  }
}

function findBreak({ number, at, entry, hash: given }: AuditRow, last: AuditRow | undefined): string | undefined {
  if (last !== undefined && number !== last.number + 1) {
    const missing = number - last.number - 1
    return `${missing === 1 ? 'the entry' : `${missing} entries`} before it ${missing === 1 ? 'is' : 'are'} missing: ${last.number} is followed by ${number}`
  }
  if (hashEntry(entry) !== given) return 'it was changed: its hash is that of another text'
  const fields = readAuditFields(entry)
  if (fields?.['number'] !== number) return 'it was moved: its text has another number'
  if (fields['at'] !== new Date(at).toISOString()) return 'its time was changed'
  const { previous } = fields
  if (last === undefined) {
    if ((number === 1) === (previous === null)) return undefined
    return number === 1
      ? 'it is the first entry, and has the hash of an entry before it'
      : 'it has no hash of the entry before it'
  }
  return previous === last.hash
    ? undefined
    : `it has another hash of the entry before it: ${last.number} was changed, or replaced, with its hash`
}

function readAuditFields(entry: string): JsonObject | undefined {
  try {
    // as: `chainEntry` wrote this text, or `findBreak` refuses it
    return JSON.parse(entry) as JsonObject
  } catch {
    return undefined
  }
}
