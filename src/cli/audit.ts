// Prints the audit log (who changed what), and checks whether somebody changed the log itself.
import { readAuditEntry } from '../gateway/http/audit.ts'
import type { AuditFields } from '../model/api/audit.ts'
import { type ChainReport, checkChain } from '../store/audit.ts'
import { readStore } from './gateway/stored.ts'
import type { Context } from './terminal/context.ts'
import { cutLine, formatTime, printOlder, printTable } from './terminal/print.ts'

/** `before`: the number of an entry. `since`: in milliseconds since the epoch. */
export type AuditOptions = {
  readonly limit: number
  readonly before?: number
  readonly since?: number
  readonly verify?: true
}

/** Prints the newest entries, the newest last. With `verify`, checks all entries: the exit code is 1 if one does not fit. */
export async function audit(context: Context, { verify, ...query }: AuditOptions): Promise<number> {
  if (verify === true) return verifyAudit(context)
  const rows = await readStore(context, [], (store) => store.auditLog(query))
  const entries = rows.map(readAuditEntry)
  if (context.json) for (const entry of entries) context.printJson(entry)
  else if (entries.length === 0) context.print('The audit log has no such entry.')
  else {
    printTable(context, ['no.', 'at', 'by', 'act', 'target', 'outcome'], entries.map(toCells))
    const { since, limit } = query
    const again = ['audit', ...(since === undefined ? [] : ['--since', new Date(since).toISOString()])]
    printOlder(context, again, { found: entries, limit, cursor: ({ number }) => String(number) })
  }
  return 0
}

function toCells({ number, at, by, act, target, details, outcome, reason, began }: AuditFields): string[] {
  const more = Object.entries(details).map(([name, text]) => `${name}: ${text}`)
  const end = began === null ? outcome : `${outcome}, of no. ${began}`
  return [
    String(number),
    formatTime(Date.parse(at)),
    cutLine(by.name, 40),
    cutLine(act, 40),
    cutLine([target ?? '', ...more].filter((text) => text !== '').join(', '), 80),
    reason === null ? end : `${end}: ${cutLine(reason, 80)}`,
  ]
}

async function verifyAudit(context: Context): Promise<number> {
  const none: ChainReport = { first: undefined, last: undefined, broken: undefined }
  const { first, last, broken } = await readStore(context, none, checkChain)
  if (context.json) {
    const [from, to] = [first?.number ?? null, last?.number ?? null]
    context.printJson({ ok: broken === undefined, from, to, hash: last?.hash ?? null, broken: broken ?? null })
  } else if (broken !== undefined) {
    context.print(`Entry ${broken.number} does not fit: ${broken.why}.`)
    if (last !== undefined) context.print(`The entries ${first?.number} to ${last.number} fit.`)
  } else if (first === undefined || last === undefined) context.print('The audit log has no entry.')
  else {
    context.print(`The entries ${first.number} to ${last.number} fit. The hash of the last one is ${last.hash}`)
    if (first.number > 1) {
      context.note(
        `The entries before ${first.number} are gone: retention deletes entries after store.retainAuditDays. Entry ${first.number} has the hash of the one before it.`,
      )
    }
  }
  return broken === undefined ? 0 : 1
}
