// The log line of a delivery. It never quotes a payload.
import { formatCommand } from '../base/shell.ts'
import type { Settlement } from '../store/records.ts'
import type { Delivery } from '../model/delivery.ts'
import { hopsHeader, readHops } from '../model/hops.ts'
import type { Log } from '../model/log.ts'
import type { OnParked } from './listeners.ts'
import type { Hook } from '../pipeline/hook.ts'

/** Writes the log line of a delivery, and reports a parked one. `before`: its state until now; undefined for a new one. */
export function logDelivery(
  { log, onParked }: { readonly log: Log; readonly onParked?: OnParked | undefined },
  delivery: Pick<Delivery, 'id' | 'method' | 'path' | 'headers' | 'source' | 'event' | 'receivedAt'>,
  settlement: Settlement,
  {
    now,
    before,
    hook,
  }: { now: number; before?: 'pending' | 'parked' | 'refused' | undefined; hook: Pick<Hook, 'mappings' | 'senders'> },
): void {
  const { id: deliveryId, method, path } = delivery
  const { source, event } = findKnownWords(delivery, hook)
  const { state, problem, mappingId, warning } = settlement
  if (state === 'parked' && problem !== undefined) {
    // a delivery that was parked before was reported when it was parked
    if (before === 'parked') return
    const text = `parked: ${problem.detail} "${formatCommand`hookloom show ${deliveryId}`}" shows the details.`
    log.error({ deliveryId, hook: path }, text)
    onParked?.({
      deliveryId,
      hook: path,
      waitsFor: settlement.waitsFor,
      hops: readHops(delivery.headers[hopsHeader] ?? ''),
    })
    return
  }
  if (warning !== undefined) log.warn({ deliveryId, hook: path, mappingId }, `${mappingId}: ${warning}`)
  const actions = settlement.jobs.filter(({ planned }) => 'action' in planned).map(({ planned }) => planned.kind)
  const outcome = actions.length > 3 ? `${actions.length} actions` : actions.join(', ') || state
  const tookMs = now - delivery.receivedAt
  const took = before === 'parked' || before === 'refused' ? `was ${before}` : `${tookMs} ms`
  log.info(
    { deliveryId, delivery: { method, hook: path, source, event, state, mappingId, actions, tookMs } },
    `${method} ${path}${event === undefined ? '' : ` ${event}`} → ${outcome}  ${took}  ${deliveryId}`,
  )
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
