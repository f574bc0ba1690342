// Reports dead jobs and parked deliveries to the operator: one message for each cause and hour. An alert is a job, so it survives a failing
// channel and a crash.
import { createHash } from 'node:crypto'
import type { Config } from '../model/config.ts'
import { findDefaultAgentId } from '../model/config.ts'
import { toErrorName } from '../base/exceptions.ts'
import { mainSessionKey, type Planned } from '../model/action.ts'
import { missingMappingModule } from '../model/delivery.ts'
import type { Log, Meter } from '../model/log.ts'
import { toLine } from '../boundary/boundary.ts'
import { cut } from '../base/text.ts'
import type { Clock, Store } from '../store/store.ts'
import { toRunName } from './plan.ts'

/** `why` is safe for a log: it has no payload and no recipient. `quotes`: the reason quotes outside text, so `why` only refers to it. */
export type Death = {
  readonly jobId: string
  readonly planned: Planned
  readonly step: string
  readonly why: string
  readonly quotes: boolean
}

/** `waitsFor`: the module that parked the delivery, or `someMapping`. */
type ParkedDelivery = {
  readonly deliveryId: string
  readonly hook: string
  readonly waitsFor: string | undefined
}

export type Alerts = {
  died(death: Death): void
  parked(parked: ParkedDelivery): void
  /** A sender handed over a secret, which opens this mapping from now on. */
  handedOver(mappingId: string): void
}

type AlertOptions = {
  readonly store: Pick<Store, 'addTask' | 'taskAgeMs'>
  readonly config: () => Config
  readonly clock: Clock
  readonly newId: () => string
  /** Called when an alert is queued. */
  readonly added: () => void
  readonly meter: Meter
  readonly log: Log
}

const pauseMs = 3_600_000
/** Causes may contain names from requests, so their number is limited. */
const maxCausesAnHour = 20

export function createAlerts({ store, config, clock, newId, added, meter, log }: AlertOptions): Alerts {
  /** The causes of the last hour; `more`: how often each occurred since its message. */
  const causes = new Map<string, { at: number; more: number }>()

  async function raise(cause: string, text: string, { event }: { event: boolean }): Promise<void> {
    const route = config().hooks.alerts
    if (route === undefined && !event) return
    const now = clock()
    const before = causes.get(cause)
    if (before !== undefined && isRecent(before.at, now)) {
      before.more += 1
      return
    }
    for (const [name, { at }] of causes) if (name !== cause && !isRecent(at, now)) causes.delete(name)
    if (causes.size >= maxCausesAnHour) return
    const known = { at: now, more: 0 }
    causes.set(cause, known)
    const standsFor = `alert/${createHash('sha256').update(cause).digest('hex').slice(0, 32)}`
    try {
      const id = newId()
      const agentId = findDefaultAgentId(config())
      const more =
        before === undefined || before.more === 0
          ? ''
          : ` Failures of this cause since the last message: ${before.more + 1}.`
      const isAdded = await store.addTask({
        id,
        planned: { kind: 'alert', agentId, sessionKey: mainSessionKey, text: cut(text + more, 1_000), event, ...route },
        lane: `alert/${id}`,
        standsFor,
        unlessWithinMs: pauseMs,
      })
      if (isAdded) return added()
      // another process has queued this alert
      known.at = now - ((await store.taskAgeMs(standsFor)) ?? 0)
    } catch (thrown) {
      causes.delete(cause)
      log.warn({ thrown: toErrorName(thrown) }, 'an alert could not be queued')
    }
  }

  return {
    died({ jobId, planned, step, why, quotes }) {
      meter('failures', { what: planned.kind === 'alert' ? 'alert' : 'job' })
      // an alert about an alert could cause the next one, without end
      if (planned.kind === 'alert') return
      const name = planned.kind === 'agent' ? `the hook "${cut(toRunName(planned), 100)}"` : 'a heartbeat'
      const text = `Hookloom: the step "${step}" of ${name} failed permanently: ${why} "hookloom retry ${jobId}" runs it again.`
      // ids and numbers differ from job to job
      void raise(quotes ? step : `${step} ${why.replace(/\d+/g, '#')}`, text, { event: false })
    },
    parked({ deliveryId, hook, waitsFor }) {
      meter('failures', { what: 'delivery' })
      const text =
        `Hookloom: a delivery of the hook "${cut(toLine(hook), 100)}" is parked` +
        `${describeCause(waitsFor)}. "hookloom show ${deliveryId}" shows the reason.`
      void raise(`parked ${waitsFor ?? hook}`, text, { event: true })
    },
    handedOver(mappingId) {
      const text = `Hookloom: a sender handed over the secret of the mapping "${cut(toLine(mappingId), 100)}" in its handshake.`
      log.warn({ mappingId }, `${text} It is accepted from now on.`)
      // never grouped: each handshake brings another secret
      void raise(`handed over ${mappingId} ${newId()}`, text, { event: true })
    },
  }
}

function describeCause(waitsFor: string | undefined): string {
  if (waitsFor === undefined) return ''
  return waitsFor === missingMappingModule ? ', because no mapping takes it any more' : `, because ${waitsFor} failed`
}

/** Also false after the clock was set back. */
function isRecent(at: number, now: number): boolean {
  return now >= at && now - at < pauseMs
}
