// Judges the records of senders: decides which problems the operator must know, and which are over. Pure: the clock and the configuration are
// arguments.
import type { AlertNotice } from '../../jobs/alerts.ts'
import { type ProblemCode, problems } from '../../../core/model/problem.ts'
import { cut, formatQuantity, toPrintableLine } from '../../../base/text.ts'
import { countDays, countExpected, findLongestSilence, type Period, sumDownMs } from './rhythm.ts'
import { computeRepairMs, quietMs, readLongest, type RefusedCause, type SenderRecord, wasToldTwice } from './record.ts'

const minuteMs = 60_000
const hourMs = 3_600_000
const dayMs = 86_400_000

/** A silence can cause an alert only if more requests than this were expected during it. For a regular sender, this is ten times the usual gap. */
const minExpected = 10
/** The same limit for senders with less than one request an hour, whose rhythm is less certain. */
const minExpectedOfRare = 15
const minSilenceMs = 5 * minuteMs
/** The history that is needed before a silence can count as unusual. */
const learnt = { requests: 20, days: 3 }
/** Refusals that a poor connection can cause. */
const chanceCodes: ReadonlySet<ProblemCode> = new Set(['body-timeout', 'body-incomplete'])
/** Fewer refused requests prove nothing if a poor connection or a stranger may have caused them. */
const minLoose = 3
const looseForMs = dayMs
const minQuietMs = 15 * minuteMs

/** One message to the operator. `cause` is the same for all messages about the same beginning or the same end. */
type SenderNotice = Omit<AlertNotice, 'subject'>

/** The message for the operator now, and the record to store when the message is queued. */
export type Judgement = { readonly notice: SenderNotice | undefined; readonly after: SenderRecord }

export type JudgeFacts = {
  readonly now: number
  /** The times in which the gateway did not listen. */
  readonly downs: readonly Period[]
  /** The name of the sender for people, empty if it is not recognised; for the record of a mapping, its id. */
  readonly name: string
  /** Milliseconds of `expectEvery` for the record of a mapping; `off` if silence is not judged; `learnt` if the history decides. */
  readonly expectation: number | 'learnt' | 'off'
}

/** The messages about a sender that the operator must get, in order, and the changes of the record that need no message. */
export function judge(record: SenderRecord, facts: JudgeFacts): Judgement[] {
  const refusals = Object.entries(record.refused).flatMap(
    ([name, cause]) => judgeRefusal(record, name, cause, facts) ?? [],
  )
  return [...refusals, ...(judgeSilence(record, facts) ?? [])]
}

function judgeRefusal(
  record: SenderRecord,
  name: string,
  cause: RefusedCause,
  facts: JudgeFacts,
): Judgement | undefined {
  const { now } = facts
  const replaceCause = (next: RefusedCause | undefined): SenderRecord => {
    const { [name]: _, ...others } = record.refused
    return { ...record, refused: next === undefined ? others : { ...others, [name]: next } }
  }
  if (cause.toldAt !== undefined) {
    if (!isOver(record, cause, now)) return undefined
    const quietUntil = wasToldTwice(cause) ? cause.toldAt + quietMs : undefined
    const text = `Hookloom: ${describeSender(record, facts)} is accepted again. Refused before: ${formatQuantity(cause.count, 'request')} from ${formatMoment(cause.since, now)} to ${formatMoment(cause.last, now)} (${describeCode(cause.code)}).`
    const { toldAt: toldBeforeAt, ...rest } = cause
    const ended = { ...rest, count: 0, firm: 0, toldBeforeAt, quietUntil }
    return {
      notice: { cause: `accepted again ${toSenderKey(record)} ${name} ${cause.since}`, text },
      after: replaceCause(ended),
    }
  }
  const isQuiet = cause.quietUntil !== undefined && now < cause.quietUntil
  const isRemembered = cause.toldBeforeAt !== undefined && now - cause.toldBeforeAt < quietMs
  if (cause.count === 0)
    return isQuiet || isRemembered ? undefined : { notice: undefined, after: replaceCause(undefined) }
  if (!isConclusive(record, cause)) {
    return now - cause.last > looseForMs ? { notice: undefined, after: replaceCause(undefined) } : undefined
  }
  if (isQuiet) return undefined
  const text = `Hookloom: ${describeSender(record, facts)} was accepted before and has been refused since ${formatMoment(cause.since, now)}: ${formatQuantity(cause.count, 'request')}, ${describeCode(cause.code)}. First reason: ${cut(toPrintableLine(cause.why), 300)} ${describeRemedy(cause)}`
  return {
    notice: { cause: `refused ${toSenderKey(record)} ${name} ${cause.since}`, text },
    after: replaceCause({ ...cause, toldAt: now }),
  }
}

/**
 * One refused request that certainly comes from the sender is enough, unless its code is one of `chanceCodes`. Otherwise there must be several,
 * and no accepted request since the first.
 */
function isConclusive({ last }: SenderRecord, { code, since, count, firm }: RefusedCause): boolean {
  if (firm > 0 && !chanceCodes.has(code)) return true
  return count >= minLoose && last < since
}

function isOver({ last }: SenderRecord, cause: RefusedCause, now: number): boolean {
  return last > cause.last && now - cause.last >= Math.min(dayMs, Math.max(minQuietMs, computeRepairMs(cause)))
}

function judgeSilence(record: SenderRecord, facts: JudgeFacts): Judgement[] | undefined {
  const { now, expectation } = facts
  const { silent, last } = record
  if (silent !== undefined && last > silent.since) {
    const text = `Hookloom: ${describeSender(record, facts)} sends again. It was silent from ${formatMoment(silent.since, now)} for ${describeMs(last - silent.since)}.`
    return [
      {
        notice: { cause: `sends again ${toSenderKey(record)} ${silent.since}`, text },
        after: { ...record, silent: undefined },
      },
    ]
  }
  // a sender that is refused is not silent
  const isRefused = Object.values(record.refused).some((cause) => cause.toldAt !== undefined && cause.last > last)
  if (silent !== undefined || expectation === 'off' || isRefused) return undefined
  const usual = typeof expectation === 'number' ? judgeExpected(record, expectation, facts) : judgeLearnt(record, facts)
  if (usual === undefined) return undefined
  const never = record.requests === 0 ? 'nothing has come yet from' : 'nothing has come from'
  const text = `Hookloom: ${never} ${describeSender(record, facts)} since ${formatMoment(last, now)}, ${usual}. "hookloom doctor" shows the last request of every sender; "When webhooks do not arrive" in the page about operations shows what to check.`
  return [
    {
      notice: { cause: `silent ${toSenderKey(record)} ${last}`, text },
      after: { ...record, silent: { since: last, toldAt: now } },
    },
  ]
}

function judgeExpected({ last }: SenderRecord, everyMs: number, { now, downs }: JudgeFacts): string | undefined {
  const silentMs = now - last - sumDownMs({ from: last, to: now }, downs)
  return silentMs > everyMs ? `expected every ${describeMs(everyMs)}` : undefined
}

function judgeLearnt(record: SenderRecord, facts: JudgeFacts): string | undefined {
  const { now, downs } = facts
  const { last } = record
  const silentMs = now - last - sumDownMs({ from: last, to: now }, downs)
  if (silentMs < minSilenceMs || !isLearnt(record)) return undefined
  const expected = countExpected(record.hours, { from: last, to: now }, downs)
  const limit = silentMs > expected * hourMs ? minExpectedOfRare : minExpected
  return expected > limit && expected > computeSilenceLimit(record, facts)
    ? `usually every ${describeMs(silentMs / expected)} at this time`
    : undefined
}

export function isLearnt({ requests, since, last, hours }: SenderRecord): boolean {
  return requests >= learnt.requests && last - since >= (learnt.days - 1) * dayMs && countDays(hours) >= learnt.days
}

/**
 * The number of expected requests above which a silence is reported: three times that of the longest usual silence, and three more. Requests of
 * independent people come at random, and in simulated weeks a silence of this length was always an outage. The limit rises if two reported
 * silences have ended by themselves in the last two weeks.
 */
function computeSilenceLimit(record: SenderRecord, { now, downs }: JudgeFacts): number {
  const repeated = record.ended.filter(({ at }) => now - at < 14 * dayMs).map(({ expected }) => expected)
  const second = repeated.toSorted((one, other) => other - one)[1] ?? 0
  const longest = Math.max(readLongest(record, now), findLongestSilence(record.hours, downs))
  return Math.max(3 * longest + 3, 1.5 * second)
}

function describeSender({ hook, mapping }: SenderRecord, { name }: JudgeFacts): string {
  if (mapping !== undefined) return `the mapping "${cut(toPrintableLine(name), 100)}"`
  const at = `the hook "${cut(toPrintableLine(hook), 100)}"`
  return name === '' ? at : `${name} (${at})`
}

export function toSenderKey({ hook, source, mapping = '' }: SenderRecord): string {
  return JSON.stringify([hook, source, mapping])
}

function describeCode(code: ProblemCode): string {
  return `${problems[code].status} ${code}`
}

const adviceByCode: Partial<Record<ProblemCode, string>> = {
  'body-too-large': 'Increase server.maxBodyBytes, or let the sender send less.',
  'media-type-unsupported': 'Set "accept" of the mapping, or another content type at the sender.',
  'payload-invalid': 'Compare the fields that the hook expects with what the sender sends now.',
  'hook-unknown': 'No mapping has this name any more. Add the mapping again, or change the URL at the sender.',
}

/** What the operator can do next. */
function describeRemedy({ code }: RefusedCause): string {
  const seen = '"hookloom list --refused" shows each reason.'
  const advice = adviceByCode[code]
  if (advice !== undefined) return `${advice} ${seen}`
  if (problems[code].status !== 401 && problems[code].status !== 429) return seen
  return `If the secret has changed at the sender, put the new one into .env; then "hookloom retry --refused" runs the requests that are kept. ${seen}`
}

/** Such as `14:02 UTC`, with the date if the moment is more than 20 hours ago. */
function formatMoment(at: number, now: number): string {
  const [date = '', time = ''] = new Date(at).toISOString().split('T')
  const short = `${time.slice(0, 5)} UTC`
  return Math.abs(now - at) < 20 * hourMs ? short : `${date} ${short}`
}

/** Such as `45 s`, `4 min`, `3 h` or `2 days`. */
export function describeMs(ms: number): string {
  if (ms < minuteMs) return `${Math.max(1, Math.round(ms / 1_000))} s`
  if (ms < 2 * hourMs) return `${Math.round(ms / minuteMs)} min`
  return ms < 2 * dayMs ? `${Math.round(ms / hourMs)} h` : `${Math.round(ms / dayMs)} days`
}
