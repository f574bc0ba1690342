// Reports to the operator what failed or needs attention, such as a dead job, a parked delivery, or a sender that is refused or silent: at most
// one message an hour for each cause. An alert is a job, so it survives a crash, and waits for a channel that is down.
import { createHash } from 'node:crypto'
import type { Config } from '../../model/config/config.ts'
import { toErrorName } from '../../base/exceptions.ts'
import { type Alert, mainSessionKey, type Planned } from '../../core/model/action.ts'
import { missingMappingModule } from '../../core/model/delivery.ts'
import type { Log } from '../../base/log.ts'
import type { Meter } from '../../model/meter.ts'
import { Problem } from '../../core/model/problem.ts'
import { toLine } from '../../boundary/boundary.ts'
import { cut, formatQuantity } from '../../base/text.ts'
import { formatCommand } from '../../base/shell.ts'
import type { Clock, Store } from '../../store/store.ts'
import type { CrowdedSession } from './turns.ts'
import { findDefaultAgentId } from '../../model/config/plan-settings.ts'

/**
 * `why` is safe for a log: it has no payload and no recipient. `quotes`: whether the reason quotes outside text; then `why` only names the
 * command that shows the reason.
 */
export type Death = {
  readonly jobId: string
  readonly planned: Planned
  readonly step: string
  readonly why: string
  readonly quotes: boolean
  readonly hops: number
}

/** `waitsFor`: the module that parked the delivery, or `missingMappingModule`. */
type ParkedDelivery = {
  readonly deliveryId: string
  readonly hook: string
  readonly waitsFor: string | undefined
  readonly hops: number
}

/** `subject`: what the cause is about, such as one sender. All causes with one subject share a limit, so no request may choose it. */
export type AlertNotice = { readonly cause: string; readonly subject: string; readonly text: string }

export type Alerts = {
  reportDeadJob(death: Death): void
  reportParked(parked: ParkedDelivery): void
  /** Reports a session that is held back because it had too many turns. */
  reportCrowded(session: CrowdedSession): void
  /** Reports a budget that is spent to this percentage; at 100, its turns wait. `name`: the name in the configuration. */
  reportBudget(spent: { readonly name: string; readonly percent: number; readonly detail: string }): void
  /** Reports that a sender handed over a secret, which opens this mapping from now on. */
  reportSecret(mappingId: string): void
  /** Reports what the API of a sender says about its webhook or its deliveries. `text` says what to do. Resolves as `alert` does. */
  reportRecovery(notice: AlertNotice): Promise<boolean>
  /**
   * Reports that a sender is refused, silent, or accepted again, or that its payloads have changed. Resolves to false if the message could not be
   * queued now; the caller tries again.
   */
  alert(notice: AlertNotice): Promise<boolean>
  /** Queues a test message, even if others were sent recently. Resolves to the id of its job. Throws `conflict` without `hooks.alerts`. */
  sendTest(): Promise<string>
}

type AlertOptions = {
  readonly store: Pick<Store, 'addTask' | 'taskAgeMs'>
  readonly config: () => Config
  readonly clock: Clock
  readonly newId: () => string
  /** Called when an alert is queued. */
  readonly onAdded: () => void
  readonly meter: Meter
  readonly log: Log
}

const pauseMs = 3_600_000
/** Causes may contain names from requests, so their number is limited. */
const maxCausesAnHour = 20
/** One noisy subject must not use up the messages about all others. */
const maxCausesOfSubject = maxCausesAnHour / 4

export function createAlerts({ store, config, clock, newId, onAdded, meter, log }: AlertOptions): Alerts {
  /** The causes with a message in the last hour. `more`: the number of times that the cause occurred since its message. */
  const causes = new Map<string, { readonly subject: string; at: number; more: number }>()
  /** When the log had a warning about a limit, by the name of the limit. */
  const warned = new Map<string, number>()

  /** The limits of a new cause. `count`: the causes of the last hour that count for it. */
  function listLimits(subject: string) {
    const ofSubject = [...causes.values()].filter((known) => known.subject === subject)
    const whose = ' of one sender, module, agent or budget'
    return [
      { name: 'all', count: causes.size, most: maxCausesAnHour, whose: '' },
      { name: `subject ${subject}`, count: ofSubject.length, most: maxCausesOfSubject, whose },
    ]
  }

  function warnOfLimit({ name, most, whose }: ReturnType<typeof listLimits>[number], now: number): void {
    for (const [known, at] of warned) if (!isRecent(at, now)) warned.delete(known)
    if (warned.has(name)) return
    warned.set(name, now)
    log.warn({}, `alerts were sent for ${most} causes${whose} within an hour; further ones get no message now`)
  }

  /** Queues the message of a cause, unless the cause had a message in the last hour. Resolves to false if a later attempt may queue it. */
  async function raise({ cause, subject, text }: AlertNotice, what: Pick<Alert, 'event' | 'hops'>): Promise<boolean> {
    const route = config().hooks.alerts
    if (route === undefined && !what.event) return true
    const now = clock()
    const before = causes.get(cause)
    if (before !== undefined && isRecent(before.at, now)) {
      before.more += 1
      return true
    }
    for (const [name, { at }] of causes) if (!isRecent(at, now)) causes.delete(name)
    const limits = listLimits(subject)
    const full = limits.find(({ count, most }) => count >= most)
    if (full !== undefined) {
      warnOfLimit(full, now)
      return false
    }
    const known = { subject, at: now, more: 0 }
    causes.set(cause, known)
    const reached = limits.find(({ count, most }) => count + 1 === most)
    const last =
      reached === undefined
        ? ''
        : ` This is the ${reached.most}th cause${reached.whose} within an hour. Further ones get no message now; the log has them.`
    const standsFor = `alert/${createHash('sha256').update(cause).digest('hex').slice(0, 32)}`
    try {
      const id = newId()
      const more =
        before === undefined || before.more === 0
          ? ''
          : ` Failures of this cause since the last message: ${before.more + 1}.`
      const isAdded = await store.addTask({
        id,
        planned: toPlannedAlert(config(), cut(text + more, 1_000) + last, what),
        lane: `alert/${id}`,
        standsFor,
        unlessWithinMs: pauseMs,
      })
      if (isAdded) onAdded()
      // another process has queued this alert
      else known.at = now - ((await store.taskAgeMs(standsFor)) ?? 0)
      return true
    } catch (thrown) {
      causes.delete(cause)
      log.warn({ thrown: toErrorName(thrown) }, 'an alert could not be queued')
      return false
    }
  }

  return {
    reportDeadJob({ jobId, planned, step, why, quotes, hops }) {
      meter('failures', { what: planned.kind === 'alert' ? 'alert' : 'job' })
      // an alert about an alert could cause the next one, without end
      if (planned.kind === 'alert') return
      // the name of the action may come from a payload, and a chat shows its links
      const name =
        planned.kind === 'agent' || planned.kind === 'deliver'
          ? `the hook "${cut(toLine(planned.origin.hook), 100)}"`
          : planned.kind === 'status'
            ? 'a commit status'
            : planned.kind === 'callback'
              ? 'a callback'
              : 'a heartbeat'
      const text = `Hookloom: the step "${step}" of ${name} failed permanently: ${why} "${formatCommand`hookloom retry ${jobId}`}" runs it again.`
      // ids and numbers are left out of the cause, because they differ from job to job
      const cause = quotes ? step : `${step} ${why.replace(/\d+/g, '#')}`
      void raise({ cause, subject: `runs of ${planned.agentId}`, text }, { event: false, hops })
    },
    reportParked({ deliveryId, hook, waitsFor, hops }) {
      meter('failures', { what: 'delivery' })
      const text =
        `Hookloom: a delivery of the hook "${cut(toLine(hook), 100)}" is parked` +
        `${describeCause(waitsFor)}. "${formatCommand`hookloom show ${deliveryId}`}" shows the reason.`
      const subject = `parked ${waitsFor ?? 'without a module'}`
      void raise({ cause: `parked ${waitsFor ?? hook}`, subject, text }, { event: true, hops })
    },
    reportRecovery: (notice) => raise(notice, { event: true }),
    reportCrowded({ jobId, agentId, sessionKey, label, turns, forMs, hops }) {
      const minutes = formatQuantity(Math.ceil(forMs / 60_000), 'minute')
      const limit = `${formatQuantity(turns, 'turn')} in an hour, the most that maxTurnsPerHour of the agent "${agentId}" allows`
      const rest = `The next ones wait for ${minutes}, or until "${formatCommand`hookloom resume ${jobId}`}".`
      const isConfigured = config().hooks.mappings.some((mapping) => mapping.sessionKey === sessionKey)
      const named =
        isConfigured || sessionKey === mainSessionKey ? `the session "${sessionKey}"` : `the session of run ${jobId}`
      log.warn({ agentId, jobId }, `${named} had ${limit}. ${rest} "hookloom pause" lists it.`)
      const name = `session "${cut(toLine(sessionKey), 100)}" of the agent "${agentId}"`
      const text = `Hookloom: the ${name} had ${limit}. ${rest} Does an agent answer itself?`
      void raise({ cause: `crowded ${label}`, subject: `sessions of ${agentId}`, text }, { event: true, hops })
    },
    reportBudget({ name, percent, detail }) {
      const text = `Hookloom: ${detail}`
      log.warn({ budget: name, percent }, text)
      // never a repeat: the store notes each percentage once a period
      void raise({ cause: `budget ${name} ${newId()}`, subject: `budget ${name}`, text }, { event: true })
    },
    reportSecret(mappingId) {
      const text = `Hookloom: a sender handed over the secret of the mapping "${cut(toLine(mappingId), 100)}" in its handshake.`
      log.warn({ mappingId }, `${text} It is accepted from now on.`)
      // never grouped: each handshake brings another secret
      const cause = `handed over ${mappingId} ${newId()}`
      void raise({ cause, subject: `handed over ${mappingId}`, text }, { event: true })
    },
    alert: (notice) => raise(notice, { event: false }),
    async sendTest() {
      const route = config().hooks.alerts
      if (route === undefined) {
        throw new Problem(
          'conflict',
          'hooks.alerts is not set, so no alert goes to a chat. Set it, such as "alerts": {"channel": "telegram", "to": "42"}.',
        )
      }
      const id = newId()
      const text = 'Hookloom: this is a test alert. It shows that alerts arrive here.'
      const planned = toPlannedAlert(config(), text, { event: false })
      await store.addTask({ id, planned, lane: `alert/${id}`, standsFor: `alert/test/${id}`, unlessWithinMs: 0 })
      onAdded()
      return id
    },
  }
}

function toPlannedAlert(config: Config, text: string, what: Pick<Alert, 'event' | 'hops'>): Alert {
  const { channel, to } = config.hooks.alerts ?? {}
  const route = channel === undefined ? {} : { channel, to }
  return { kind: 'alert', agentId: findDefaultAgentId(config), sessionKey: mainSessionKey, text, ...what, ...route }
}
function describeCause(waitsFor: string | undefined): string {
  if (waitsFor === undefined) return ''
  return waitsFor === missingMappingModule ? ', because no mapping takes it any more' : `, because ${waitsFor} failed`
}

/** Whether a moment was less than the pause ago. False if the clock was set back. */
function isRecent(at: number, now: number): boolean {
  return now >= at && now - at < pauseMs
}
