// The check of `doctor` on the senders: when the last request of each was accepted, and which senders are refused or silent.
import { existsSync } from 'node:fs'
import type { Config } from '../../model/config/config.ts'
import type { SenderFields } from '../../model/api/operations.ts'
import { toStorePlace } from '../../model/places.ts'
import { Problem } from '../../core/model/problem.ts'
import { formatQuantity, toPrintableLine } from '../../base/text.ts'
import { describeMs } from '../../gateway/deliveries/senders/judge.ts'
import type { SenderTable } from '../../gateway/proofs/senders.ts'
import { listSenders } from '../../gateway/deliveries/senders/list.ts'
import { openReader } from '../../store/open.ts'
import { findRunning } from '../gateway/running.ts'
import { chooseStorePlace } from '../gateway/stored.ts'
import { formatTime } from '../terminal/print.ts'
import type { CheckFinding } from './findings.ts'

const shownSenders = 30

/** If the store cannot be read, there is no finding here: `checkStore` reports it. */
export async function checkSenders(dir: string, config: Config, senders: SenderTable): Promise<CheckFinding[]> {
  try {
    const place = chooseStorePlace(findRunning(dir)?.store, toStorePlace(dir, config))
    if (place.kind !== 'url' && !existsSync(place.file)) return []
    const reader = await openReader(place)
    try {
      return buildSenderFindings(await listSenders(reader, senders), Date.now())
    } finally {
      await reader.close()
    }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return []
  }
}

function buildSenderFindings(senders: readonly SenderFields[], now: number): CheckFinding[] {
  const name = 'senders'
  if (senders.length === 0) return [{ name, ok: true, detail: 'no request was accepted yet' }]
  const shown = senders.slice(-shownSenders)
  const more = senders.length - shown.length
  const lines = shown.toReversed().map((sender) => toPrintableLine(describeLast(sender, now)))
  const detail = [...lines, ...(more > 0 ? [`and ${more} senders whose last request is older`] : [])].join('\n')
  const isWell = senders.every(
    ({ silentSince, refused }) => silentSince === null && refused.every(({ acceptedAt }) => acceptedAt !== null),
  )
  return [isWell ? { name, ok: true, detail } : { name, ok: false, severity: 'warning', detail }]
}

function describeLast(
  { hook, source, sourceName, lastAt, usualMs, silentSince, refused }: SenderFields,
  now: number,
): string {
  const who = source === null ? `hook ${hook}` : `${sourceName ?? source} at hook ${hook}`
  const usual = usualMs === null ? '' : `, usually every ${describeMs(usualMs)}`
  const silent = silentSince === null ? '' : '. It is silent'
  const causes = refused.map(({ status, code, count, since, acceptedAt }) => {
    const what = `${formatQuantity(count, 'request')}, ${status} ${code}`
    const from = formatTime(Date.parse(since))
    if (acceptedAt === null) return `. Refused since ${from}: ${what}`
    return `. Accepted again since ${formatTime(Date.parse(acceptedAt))}; refused from ${from}: ${what}`
  })
  return `${who}: last request ${describeMs(now - Date.parse(lastAt))} ago${usual}${silent}${causes.join('')}`
}
