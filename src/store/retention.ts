// Deletes old deliveries, and old entries of the audit log, a minute after the start and then every hour. Only one of several gateways does it.
import type { Log } from '../model/log.ts'
import type { Duty } from './named-leases.ts'
import type { Store } from './store.ts'

const everyMs = 3_600_000
const firstAfterMs = 60_000
const dayMs = 86_400_000

type RetentionParts = {
  readonly store: Pick<Store, 'sweep' | 'pruneAudit'>
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

  async function sweepOnce(): Promise<void> {
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
      await running
    },
  }
}
