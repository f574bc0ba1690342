// The messages to the operator about the outbox of a sender. The store has which were sent, so a restart repeats none. If the gateway is killed in a
// pass, only the log names the deliveries that this pass lost.
import { formatQuantity } from '../../../base/text.ts'
import { formatCommand } from '../../../base/shell.ts'
import type { AlertNotice, Alerts } from '../../jobs/alerts.ts'
import type { Log } from '../../../base/log.ts'
import type { HookState } from '../../../model/outbox.ts'
import type { Clock, Store } from '../../../store/store.ts'
import { describeMs } from '../senders/judge.ts'
import { type RecoverResult, type RecoverSource, toOutboxCursor } from './pass.ts'

const hourMs = 3_600_000
/** A failure that the next passes can end is reported after this time. GitHub, which forgets first, keeps deliveries for three days. */
const reportedAfterMs = 3 * hourMs
/** The longest time between two passes that fail. After a longer one, the gateway was not running in between, so a new failure begins. */
const maxPauseMs = 2 * hourMs

/** The times are milliseconds since the epoch. */
type OutboxState = {
  /** Why the sender does not call the hook; undefined if it does. */
  readonly off?: string | undefined
  /** When the sender called the hook again after it did not. */
  readonly onAt?: number | undefined
  /** Passes that fail, the first at `since` and the last at `last`. `told`: the reason that was reported last. */
  readonly failing?: { readonly since: number; readonly last: number; readonly told?: string | undefined } | undefined
  /** The deliveries that were lost or refused since the last message about some, which was queued at `toldAt`. */
  readonly lost?: { readonly gone: number; readonly refused: number; readonly toldAt?: number | undefined } | undefined
}

type Notice = Omit<AlertNotice, 'subject'>

/** `after`: the state when the message is queued. `untold`: the state if it could not be queued; undefined if the state then stays the same. */
type Step = {
  readonly notice?: Notice | undefined
  readonly after: OutboxState
  readonly untold?: OutboxState | undefined
}

export type RecoveryNotices = {
  /** Reports a sender that no longer calls the hook, once for each reason, until it calls the hook again. A crash may repeat the message. */
  noteHook(source: RecoverSource & { readonly turnsOn: boolean }, state: HookState): Promise<void>
  /**
   * Reports passes that fail: at once if the API refuses the gateway, else after some hours; then the first pass that succeeds. Reports
   * deliveries that are lost or refused, in at most one message an hour.
   */
  notePass(source: RecoverSource, result: PassResult): Promise<void>
}

type PassResult = Pick<RecoverResult, 'failed' | 'gone' | 'refused' | 'problem' | 'isDenied'>

type NoticesParts = {
  readonly store: Pick<Store, 'appendAll' | 'cursor'>
  /** Queues a message to the operator. Resolves to false if it could not be queued now; the next pass tries again. */
  readonly alert: Alerts['reportRecovery']
  readonly clock: Clock
  readonly log: Log
}

export function createRecoveryNotices({ store, alert, clock, log }: NoticesParts): RecoveryNotices {
  /** The message is queued before the state is noted: after a crash in between, the same cause is queued again, at most once an hour. */
  async function update(source: RecoverSource, step: (before: OutboxState) => Step | undefined): Promise<void> {
    const name = `${toOutboxCursor(source)} state`
    for (;;) {
      const from = await store.cursor(name)
      const judged = step(readState(from))
      if (judged === undefined) return
      const { notice, after, untold } = judged
      const isTold =
        notice === undefined || (await alert({ ...notice, cause: `${name} ${notice.cause}`, subject: name }))
      const next = isTold ? after : untold
      if (next === undefined) return
      if ((await store.appendAll([], { name, from, to: JSON.stringify(next) })) !== 'moved') return
    }
  }

  return {
    async noteHook(source, state) {
      const { sender, path, turnsOn } = source
      await update(source, (before) => {
        if (state.isOn) {
          if (before.off === undefined) return undefined
          log.info({ sender, hook: path }, `${sender} calls the hook "${path}" again.`)
          return { after: { ...before, off: undefined, onAt: clock() } }
        }
        if (before.off === state.why) return undefined
        const move = turnsOn ? 'The gateway turns it on again.' : 'Turn it on there, or set recover.turnOn.'
        const text = `Hookloom: ${sender} does not call the hook "${path}" any more. ${state.why} ${move}`
        log.error({ sender, hook: path }, text)
        // the times in a reason are left out: a sender that extends a pause again and again causes one message an hour
        const cause = `off ${before.onAt ?? ''} ${state.why.replace(/\d+/g, '#')}`
        return { notice: { cause, text }, after: { ...before, off: state.why } }
      })
    },
    async notePass(source, result) {
      await update(source, (before) => judgeLost(source, { before, result, now: clock() }))
      await update(source, (before) => judgeFailure(source, { before, result, now: clock() }))
    },
  }
}

type Facts = { readonly before: OutboxState; readonly result: PassResult; readonly now: number }

function judgeFailure({ sender, path }: RecoverSource, { before, result, now }: Facts): Step | undefined {
  const { failing, ...others } = before
  const recovery = `recovery from ${sender} for the hook "${path}"`
  const { failed, isDenied } = result
  const why =
    result.problem ?? (failed > 0 ? `${sender} does not return some deliveries. They are asked for again.` : '')
  if (why === '') {
    if (failing?.told === undefined) return failing && { after: others }
    const text = `Hookloom: ${recovery} works again. It failed for ${describeMs(now - failing.since)}.`
    return { notice: { cause: `works ${failing.since}`, text }, after: others }
  }
  const isSame = failing !== undefined && (failing.told !== undefined || isWithin(failing.last, maxPauseMs, now))
  const { since, told } = isSame ? failing : { since: now }
  const untold = { ...others, failing: { since, last: now, told } }
  if (isDenied ? told === why : told !== undefined || now - since < reportedAfterMs) return { after: untold }
  const text = isDenied
    ? `Hookloom: ${recovery} fails: ${why}`
    : `Hookloom: ${recovery} has failed for ${describeMs(now - since)}: ${why} "${formatCommand`hookloom recover ${sender}`}" tries it at once.`
  const notice = { cause: `fails ${since} ${why.replace(/\d+/g, '#')}`, text }
  return { notice, after: { ...others, failing: { since, last: now, told: why } }, untold }
}

function judgeLost({ sender, path }: RecoverSource, { before, result, now }: Facts): Step | undefined {
  const known = before.lost ?? { gone: 0, refused: 0 }
  const lost = { ...known, gone: known.gone + result.gone, refused: known.refused + result.refused }
  const { gone, refused, toldAt } = lost
  if (gone + refused === 0) return undefined
  const untold = { ...before, lost }
  if (toldAt !== undefined && isWithin(toldAt, hourMs, now)) return { after: untold }
  const facts = [
    ...(gone === 0
      ? []
      : [`${formatQuantity(gone, 'is', 'are')} lost, because ${sender} no longer has ${gone === 1 ? 'it' : 'them'}`]),
    ...(refused === 0 ? [] : [`the hook refuses ${refused}`]),
  ]
  const again = ` "${formatCommand`hookloom recover ${sender} --since 1d`}" tries the refused ones again, after a change of the mapping.`
  const text =
    `Hookloom: of the deliveries of ${sender} for the hook "${path}" that did not arrive, ${facts.join(', and ')}. ` +
    `The log has each id and reason.${refused === 0 ? '' : again}`
  return {
    notice: { cause: `lost ${toldAt ?? ''}`, text },
    after: { ...before, lost: { gone: 0, refused: 0, toldAt: now } },
    untold,
  }
}

/** Whether a moment was less than some time ago. False if the clock was set back. */
function isWithin(at: number, ms: number, now: number): boolean {
  return now >= at && now - at < ms
}

function readState(text: string | undefined): OutboxState {
  if (text === undefined) return {}
  // as: only this file writes the cursor
  if (text.startsWith('{')) return JSON.parse(text) as OutboxState
  // an earlier version wrote "on" or the reason
  return text === 'on' ? {} : { off: text }
}
