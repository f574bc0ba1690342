// /api/audit: the log of all changes. An entry shows less than the right `read` allows anyway: no payload, and only the names of tokens.
// /api/writes: the changes that a tool on the machine of the gateway made to its files.
import { cut } from '../../../base/text.ts'
import { Problem } from '../../../core/model/problem.ts'
import type { AuditCheck, AuditFields, SaveFields } from '../../../model/api/audit.ts'
import { checkChain } from '../../../store/audit.ts'
import { toIsoTime } from '../../deliveries/records.ts'
import { readAuditEntry } from '../audit.ts'
import type { ApiParts } from './parts.ts'
import { type QueryTexts, readLimit, readMoment, readParameter } from './query.ts'
import type { Handlers } from './handlers.ts'

type AuditParts = Pick<ApiParts, 'store' | 'findSave'>

/** A filter reads this many pages at most for one answer. */
const maxPages = 20
const rowsAtOnce = 500
/** The limits of an answer about a save. */
const maxFiles = 50
const maxChars = 100_000

export function handleAudit({ store, findSave }: AuditParts) {
  let checking: Promise<AuditCheck> | undefined

  async function check(): Promise<AuditCheck> {
    const { first, last, broken = null } = await checkChain(store)
    return {
      fits: broken === null,
      from: first?.number ?? null,
      to: last?.number ?? null,
      hash: last?.hash ?? null,
      broken,
    }
  }

  return {
    // the newest entries first
    'GET /api/audit': async ({ query }) => listEntries(store, query),
    'GET /api/audit/check': () => {
      checking ??= check().finally(() => (checking = undefined))
      return checking
    },
    'POST /api/audit/{number}/save': async ({ params: { number: text } }) => {
      const number = /^\d{1,15}$/.test(text) ? Number(text) : 0
      const [row] = await store.auditLog({ limit: 1, before: number + 1 })
      const entry = row?.number === number ? readAuditEntry(row) : undefined
      if (entry?.act !== 'reload' || entry.outcome !== 'done')
        throw new Problem(
          'not-found',
          `No entry of the audit log with the number ${cut(text, 20)} is a save that went live.`,
        )
      const found = await findSave({ at: Date.parse(entry.at), generation: entry.target ?? '' })
      if (found !== undefined) return toSaveFields(found)
      throw new Problem(
        'not-found',
        'The files of this save are not remembered here: it is too old or too large, or another gateway has them.',
      )
    },
    // the only effect of this call is its entry in the audit log
    'POST /api/writes': async ({ body }) => {
      await body()
      return {}
    },
  } satisfies Partial<Handlers>
}

async function listEntries(
  store: AuditParts['store'],
  query: QueryTexts<'limit' | 'before' | 'since' | 'by' | 'act'>,
): Promise<{ entries: AuditFields[]; next: number | null }> {
  const limit = readLimit(query)
  const text = readParameter(query, 'before')
  if (text !== undefined && !/^\d{1,15}$/.test(text))
    throw new Problem('usage-invalid', 'before must be the "next" of the previous answer.')
  const since = readMoment(query, 'since')
  const by = readParameter(query, 'by')
  const acts = readParameter(query, 'act')?.split(',')
  const isWanted = (entry: AuditFields) =>
    (by === undefined || entry.by.name === by) && (acts === undefined || acts.includes(entry.act))
  const atOnce = by === undefined && acts === undefined ? limit : rowsAtOnce
  const entries: AuditFields[] = []
  let before = text === undefined ? undefined : Number(text)
  for (let pages = 0; pages < maxPages; pages += 1) {
    const rows = (await store.auditLog({ limit: atOnce, before, since })).toReversed()
    for (const entry of rows.map(readAuditEntry)) {
      if (isWanted(entry)) entries.push(entry)
      before = entry.number
      if (entries.length === limit) return { entries, next: before }
    }
    if (rows.length < atOnce) return { entries, next: null }
  }
  return { entries, next: before ?? null }
}

type Found = NonNullable<Awaited<ReturnType<ApiParts['findSave']>>>

function toSaveFields({ save, before, isLast }: Found): SaveFields {
  const old = before?.files ?? {}
  const changed = [...new Set([...Object.keys(old), ...Object.keys(save.files)])]
    .filter((name) => before !== undefined && old[name] !== save.files[name])
    .toSorted()
  return {
    previousAt: before === undefined ? null : toIsoTime(before.at),
    isLast,
    changes: save.changes === undefined ? null : [...save.changes].map(([what, change]) => ({ what, ...change })),
    hidden: Math.max(0, changed.length - maxFiles),
    files: changed.slice(0, maxFiles).map((name) => ({
      name,
      before: old[name]?.slice(0, maxChars) ?? null,
      after: save.files[name]?.slice(0, maxChars) ?? null,
    })),
  }
}
