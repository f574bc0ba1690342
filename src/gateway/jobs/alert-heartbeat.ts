// The dead-man's ping of `hooks.alerts.heartbeat`: an outside monitor that hears nothing knows that the gateway is down, or that its alerts do
// not arrive. So there is no ping while the last alert could not be delivered, the channel of the alerts cannot be used, or the store cannot
// be written. Of several gateways, the one that watches the senders pings.
import { takeStart } from '../../base/text.ts'
import { abortAfter, withDeadline } from '../../base/time.ts'
import type { Channel, Probe } from '../../model/channel.ts'
import type { Config } from '../../model/config/config.ts'
import type { Log } from '../../base/log.ts'
import { updateCursor } from '../../store/cursors.ts'
import type { Clock, Store } from '../../store/store.ts'

/** The end of an attempt to deliver an alert. `why`: the reason for the log. It names no recipient. */
export type AlertAttempt = { readonly isDelivered: true } | { readonly isDelivered: false; readonly why: string }

export type AlertHeartbeat = {
  /** Called after each attempt to deliver an alert, on the gateway that made it. */
  noteAttempt(attempt: AlertAttempt): void
  /** Pings if the next ping is due. Called at intervals after `start`. Never rejects. */
  look(): Promise<void>
  start(): void
  stop(): Promise<void>
}

type HeartbeatParts = {
  readonly store: Pick<Store, 'cursor' | 'appendAll' | 'health'>
  readonly config: () => Config
  readonly channels: () => ReadonlyMap<string, Channel>
  /** Whether this gateway has the duty to ping. */
  readonly isPinging: () => boolean
  readonly clock: Clock
  readonly log: Log
}

/** The outcome of the last attempt of any gateway to deliver an alert: `delivered`, or the reason why it failed. */
const cursorName = 'alerts/last'
const delivered = 'delivered'
const lookEveryMs = 5_000
/** The pause after a ping that failed or was withheld. */
const againMs = 30_000
const pingMs = 10_000
const probeMs = 10_000
const maxWhyChars = 300

export function createAlertHeartbeat(parts: HeartbeatParts): AlertHeartbeat {
  const { store, config, channels, isPinging, clock, log } = parts
  const stopping = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let working: Promise<void> = Promise.resolve()
  let dueAt = 0
  /** The URL of the configuration at the last call of `look`. */
  let lastUrl: string | undefined
  /** The reason why the last ping was not sent or not accepted. It is logged when it changes. */
  let trouble: string | undefined

  function enqueue(work: () => Promise<void>): Promise<void> {
    working = working.then(work).catch((thrown: unknown) => {
      if (!stopping.signal.aborted) report(`the store failed (${thrown instanceof Error ? thrown.name : 'unknown'})`)
    })
    return working
  }

  async function lookOnce(): Promise<void> {
    const { heartbeat } = config().hooks.alerts ?? {}
    if (heartbeat === undefined || !isPinging() || stopping.signal.aborted) return
    if (lastUrl !== heartbeat.url) dueAt = 0
    lastUrl = heartbeat.url
    const now = clock()
    // the clock may have been set back
    if (now < dueAt && dueAt - now <= heartbeat.every) return
    dueAt = now + Math.min(heartbeat.every, againMs)
    const why = (await findObstacle()) ?? (await ping(heartbeat.url))
    if (stopping.signal.aborted) return
    if (why === undefined) dueAt = now + heartbeat.every
    report(why)
  }

  /** The reason why alerts do not arrive now, if it can be known without sending one. */
  async function findObstacle(): Promise<string | undefined> {
    const { trouble: fault } = await store.health()
    if (fault !== undefined) return 'the store cannot be written'
    const last = (await store.cursor(cursorName)) ?? delivered
    if (last !== delivered) return `the last alert could not be delivered: ${last}`
    const { channel: name } = config().hooks.alerts ?? {}
    // the channel `last` depends on the conversation, so it cannot be checked
    if (name === undefined || name === 'last') return undefined
    const channel = channels().get(name)
    if (channel === undefined) return `the channel "${name}" is not configured`
    const probed = await probe(channel)
    return probed.ok ? undefined : `the channel "${name}" cannot be used: ${probed.detail}`
  }

  async function probe({ probe: ask }: Channel): Promise<Probe> {
    if (ask === undefined) return { ok: true, detail: '' }
    const ended = await withDeadline({ outer: stopping.signal, ms: probeMs }, ask).catch(() => undefined)
    return ended?.kind === 'finished' ? ended.value : { ok: false, detail: 'it does not answer.' }
  }

  /** The URL is a secret: anyone who has it can pretend that the gateway works. So no text here has it, and no redirect gets it. */
  async function ping(url: string): Promise<string | undefined> {
    try {
      const signal = abortAfter(pingMs, stopping.signal)
      const response = await fetch(url, { redirect: 'manual', headers: { 'user-agent': 'hookloom' }, signal })
      await response.body?.cancel()
      return response.ok ? undefined : `the monitor answers ${response.status}`
    } catch (error) {
      const code = error instanceof Error && error.cause instanceof Error && 'code' in error.cause && error.cause.code
      return `the monitor does not answer${typeof code === 'string' ? ` (${code})` : ''}`
    }
  }

  function report(why: string | undefined): void {
    if (why === trouble) return
    trouble = why
    if (why === undefined) log.info({}, 'The heartbeat of the alerts is sent again.')
    else
      log.warn(
        {},
        `The heartbeat of the alerts is not sent: ${why}${why.endsWith('.') ? '' : '.'} It is tried again. After a correction, "hookloom alert --test" shows whether alerts arrive.`,
      )
  }

  async function note(attempt: AlertAttempt): Promise<void> {
    const to = attempt.isDelivered ? delivered : takeStart(attempt.why, maxWhyChars)
    // another gateway may write its outcome at the same time: the last write counts
    if (await updateCursor(store, cursorName, (from = delivered) => (from === to ? undefined : to))) dueAt = 0
  }

  return {
    noteAttempt: (attempt) => void enqueue(() => note(attempt)),
    look: () => enqueue(lookOnce),
    start() {
      timer = setInterval(() => void enqueue(lookOnce), lookEveryMs).unref()
    },
    async stop() {
      clearInterval(timer)
      stopping.abort()
      await working
    },
  }
}
