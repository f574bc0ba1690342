// The log line of a delivery. It never quotes a payload.
import { formatCommand } from '../../base/shell.ts'
import type { Delivery } from '../../core/model/delivery.ts'
import type { Log } from '../../base/log.ts'
import type { Hook } from '../../core/mapping/hook.ts'
import { isParkedNow, type StoredDelivery } from './listeners.ts'

/** Writes the log line of a delivery that was stored. A delivery that is parked again has none: it was reported when it was parked. */
export function logStored(stored: StoredDelivery, log: Log): void {
  const { delivery, hook, settlement, at } = stored
  const { id: deliveryId, method, path } = delivery
  const { source, event } = findKnownWords(delivery, hook)
  const { state, problem, mappingId, warning } = settlement
  if (state === 'parked' && problem !== undefined) {
    if (!isParkedNow(stored)) return
    const text = `parked: ${problem.detail} "${formatCommand`hookloom show ${deliveryId}`}" shows the details.`
    log.error({ deliveryId, hook: path }, text)
    return
  }
  if (warning !== undefined) log.warn({ deliveryId, hook: path, mappingId }, `${mappingId}: ${warning}`)
  const actions = settlement.jobs.filter(({ planned }) => 'action' in planned).map(({ planned }) => planned.kind)
  const outcome = actions.length > 3 ? `${actions.length} actions` : actions.join(', ') || state
  const tookMs = at - delivery.receivedAt
  log.info(
    { deliveryId, delivery: { method, hook: path, source, event, state, mappingId, actions, tookMs } },
    `${method} ${path}${event === undefined ? '' : ` ${event}`} → ${outcome}  ${describeTime(stored, tookMs)}  ${deliveryId}`,
  )
}

function describeTime(stored: StoredDelivery, tookMs: number): string {
  if (stored.kind === 'new') return stored.isLate ? 'was refused' : `${tookMs} ms`
  return stored.before === 'parked' ? 'was parked' : `${tookMs} ms`
}

/**
 * The source and the event of a delivery, each only if it is the name of a known sender, the value of a header, or a word of the
 * configuration. Texts of the payload are left out.
 */
export function findKnownWords(
  { source, event, headers }: Pick<Delivery, 'source' | 'event' | 'headers'>,
  { mappings, senders }: Pick<Hook, 'mappings' | 'senders'>,
): Pick<Delivery, 'source' | 'event'> {
  const isNamed = (word: string, key: 'source' | 'event') =>
    mappings.some(({ match }) => [match[key]].flat().includes(word))
  const isKnownSource = source !== undefined && (senders.find(source) !== undefined || isNamed(source, 'source'))
  const isKnownEvent = event !== undefined && (Object.values(headers).includes(event) || isNamed(event, 'event'))
  return { source: isKnownSource ? source : undefined, event: isKnownEvent ? event : undefined }
}
