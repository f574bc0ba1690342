// Deletes old deliveries, and old entries of the audit log, a minute after the start and then every hour. Only one of several gateways does it.
// The clock of the store says what is old, so nothing is deleted for a day after this clock made a large step.
import type { Log } from '../base/log.ts'
import { updateCursor } from './cursors.ts'
import type { Duty } from './named-leases.ts'
import type { Store } from './store.ts'

const everyMs = 3_600_000
const firstAfterMs = 60_000
const dayMs = 86_400_000
/** The value of this cursor: the moment of the newest check of the clock, and the moment since which the clock has made no large step. */
const cursorName = 'retention'

type RetentionParts = {
  readonly store: Pick<Store, 'sweep' | 'pruneAudit' | 'now' | 'cursor' | 'appendAll'>
  readonly days: () => { readonly retainDays: number; readonly retainAuditDays: number }
  readonly duty: Duty
  readonly log: Log
}

export function createRetention({ store, days, duty, log }: RetentionParts) {
  let running: Promise<void> | undefined
  const sweep = () => {
    if (!duty.isHeld()) return
    running ??= sweepOnce().finally(() => {
      running = undefined
    })
  }
  const first = setTimeout(sweep, firstAfterMs).unref()
  const timer = setInterval(sweep, everyMs).unref()
  // a clock may be set in the first minute: many machines start with a wrong time
  const started = isClockSteady().catch(() => undefined)

  /** False for a day after a step of more than a quarter of the time for which deliveries are kept. */
  async function isClockSteady(): Promise<boolean> {
    const now = await store.now()
    const maxStepMs = Math.max(dayMs, (days().retainDays * dayMs) / 4)
    let stepMs = 0
    let steadySince = now
    await updateCursor(store, cursorName, (value) => {
      const [, checkedAt = now, since = now] = (/^(\d+) (\d+)$/.exec(value ?? '') ?? []).map(Number)
      stepMs = now - checkedAt
      steadySince = Math.abs(stepMs) > maxStepMs ? now : since
      return `${now} ${steadySince}`
    })
    if (Math.abs(stepMs) > maxStepMs) {
      const message =
        'the time of the store has changed by days since it was checked last, so nothing is deleted for a day. ' +
        'If no gateway ran in these days, do nothing. Otherwise correct the clock within this day'
      log.warn({ days: Math.round(stepMs / dayMs) }, message)
    }
    return now - steadySince >= dayMs
  }

  async function sweepOnce(): Promise<void> {
    try {
      if (!(await isClockSteady())) return
    } catch (error) {
      log.warn({ err: error }, 'the time of the store could not be checked; the gateway tries again in an hour')
      return
    }
    try {
      const deleted = await store.sweep(days().retainDays * dayMs)
      if (deleted > 0) log.info({ deliveries: deleted }, 'deliveries past store.retainDays were deleted')
    } catch (error) {
      log.warn({ err: error }, 'old deliveries could not be deleted; the gateway tries again in an hour')
    }
    try {
      const deleted = await store.pruneAudit(days().retainAuditDays * dayMs)
      if (deleted > 0)
        log.info({ entries: deleted }, 'entries of the audit log past store.retainAuditDays were deleted')
    } catch (error) {
      log.warn({ err: error }, 'old entries of the audit log could not be deleted; the gateway tries again in an hour')
    }
  }

  return {
    async stop(): Promise<void> {
      clearTimeout(first)
      clearInterval(timer)
      await started
      await running
    },
  }
}
