// The fields of stored records that `--json` and /api show. A value that is unknown is null; the schemas in `model/api/` mark the fields that can
// be absent. Times are ISO 8601.
import { cut } from '../../base/text.ts'
import type { Planned } from '../../core/model/action.ts'
import { type Job, type Message, type Session, type SystemEvent, toShownPostState } from '../../model/job.ts'
import { findVerdict } from '../../model/verdict.ts'
import type { NodeRecord } from '../../store/owners.ts'
import type { DeliveryRecord } from '../../store/records.ts'
import type { DeliveryFields, DeliverySummary, JobFields, ShownFields, VerdictFields } from '../../model/api/answers.ts'
import type { EventFields, MessageFields, SessionFields } from '../../model/api/sessions.ts'
import { describeMessage, maxAboutChars } from './about.ts'

/** The fields of an action after the policy was applied: with its final agent and session key. */
export function toActionFields(planned: Planned): object {
  if (!('action' in planned)) return planned
  const { kind, ...fields } = planned.action
  if (planned.kind !== 'agent') return { kind, ...fields }
  return { kind, ...fields, agentId: planned.agentId, sessionKey: planned.sessionKey }
}

export function toDeliverySummary(record: DeliveryRecord): DeliverySummary {
  const { deliveryId, receivedAt, hook, source = null, event = null, mappingId = null, state } = record
  const { repeats, repeatedAt, recovered, edited } = record
  const repeated = { repeats, repeatedAt: repeatedAt === undefined ? null : toIsoTime(repeatedAt) }
  return {
    deliveryId,
    receivedAt: toIsoTime(receivedAt),
    hook,
    source,
    event,
    mappingId,
    ...repeated,
    recovered,
    edited,
    state,
  }
}

export function toDeliveryFields(record: DeliveryRecord): DeliveryFields {
  const { state, ...head } = toDeliverySummary(record)
  const actions = record.jobs.map((job) => toActionFields(job.planned))
  return { ...head, generation: record.generation, node: record.node ?? null, state, actions }
}

/** `waits`: why each job waits, by its id. */
export function toShownFields(record: DeliveryRecord, waits: ReadonlyMap<string, string>): ShownFields {
  return {
    ...toDeliveryFields(record),
    transformHash: record.transformHash ?? null,
    bodyDiffered: record.bodyDiffered,
    settledAt: record.settledAt === undefined ? null : toIsoTime(record.settledAt),
    answer: record.answer,
    jobs: record.jobs.map((job) => toJobFields(job, waits.get(job.id))),
    problem: record.problem ?? null,
    trace: record.trace,
    log: record.log,
  }
}

/** Whether a job is queued and its last attempt failed. Some failures do not count as attempts, such as a 503 of a busy provider. */
export function isFailing({
  state,
  attempts,
  failingSince,
}: Pick<Job, 'state' | 'attempts' | 'failingSince'>): boolean {
  return state === 'queued' && (attempts > 0 || failingSince !== undefined)
}

/**
 * One line about a delivery: the problem if it is parked or was dropped; the reason if it was skipped; the error of its first job that is dead or
 * failing; otherwise what its message or text is about. `template`: that of its mapping, if it is known.
 */
export function describeContent(record: DeliveryRecord, template?: string): string {
  const { state, mappingId, problem, log, jobs, event } = record
  if (problem !== undefined && (state === 'parked' || state === 'dropped')) {
    // "<error>: <message>\n at <file>:<line>:<column>\n<excerpt>"; a message may have several lines
    const [, line, place] = /^([^\n]*)[^]*?\n {2}at ([^\n]+?:\d+):\d+/.exec(problem.frame?.slice(0, 4_000) ?? '') ?? []
    return readFirstLine(line === undefined ? problem.detail : `${line} · ${place}`)
  }
  if (state === 'skipped') {
    if (mappingId === undefined) return 'No mapping matched.'
    const logged = log.at(-1)
    return readFirstLine(`The mapping "${mappingId}" made no action${logged === undefined ? '.' : `: ${logged}`}`)
  }
  const failed = jobs.find((job) => job.state === 'dead' || isFailing(job))
  if (failed?.lastError !== undefined) return readFirstLine(failed.lastError)
  const [first, ...others] = jobs
  if (first === undefined) return ''
  const count = others.length === 0 ? '' : `${jobs.length} actions: `
  return cut(`${count}${describeMessage(readActionText(first.planned), { template, event })}`, maxAboutChars)
}

/** The message or the text of an action; empty if it has none. */
export function readActionText(planned: Planned): string {
  if (planned.kind === 'agent' || planned.kind === 'deliver') return planned.action.message
  return planned.kind === 'wake' ? planned.action.text : ''
}

/** The first line that is not blank, cut to 200 characters. */
export function readFirstLine(text: string): string {
  const [line = ''] = /\S[^\n]*/.exec(text.slice(0, 10 * maxAboutChars)) ?? []
  return cut(line, maxAboutChars)
}

/**
 * The fields of a job. A wake has no run, and so no run id. `posts`: the messages of the reply, each with the provider's id after it was
 * accepted. `waits`: why the job waits; undefined if it is not queued.
 */
export function toJobFields(job: Job, waits: string | undefined): JobFields {
  const { id, planned, state, attempts, lastError, failingSince, endedBy } = job
  return {
    jobId: id,
    runId: planned.kind === 'wake' ? null : id,
    deliveryId: job.deliveryId ?? null,
    kind: planned.kind,
    agentId: planned.agentId,
    sessionKey: planned.sessionKey,
    state,
    attempts,
    lastError: lastError ?? null,
    failingSince: failingSince === undefined ? null : toIsoTime(failingSince),
    endedBy: endedBy ?? null,
    ...(waits === undefined ? {} : { waits }),
    ...toVerdictFields(job),
    failures: job.failures.map(({ at, error }) => ({ at: toIsoTime(at), error })),
    steps: job.steps.map(({ name, state: stepState, startedAt, at, detail, model, usage }) => ({
      name,
      state: stepState,
      ...(startedAt === undefined ? {} : { startedAt: toIsoTime(startedAt) }),
      at: toIsoTime(at),
      detail: detail ?? null,
      ...(model === undefined ? {} : { model }),
      ...(usage === undefined ? {} : { usage }),
    })),
    posts: job.posts.map((post) => ({
      step: post.step ?? 'deliver',
      part: post.part,
      channel: post.channel,
      to: post.to ?? null,
      state: toShownPostState(post, job),
      messageId: post.id ?? null,
      at: post.state === 'waiting' ? null : toIsoTime(post.at),
      nonce: post.nonce,
      mayBeTwice: post.mayBeTwice === true,
      failed: post.failed ?? null,
    })),
  }
}

/** The verdict of a run; undefined if its mapping has no `verdicts`. */
export function toVerdictFields(job: Pick<Job, 'planned' | 'steps'>): VerdictFields | undefined {
  const found = findVerdict(job)
  if (found === undefined) return undefined
  const { words, word, form, isRepaired = false } = found
  return { verdicts: words, verdict: word, verdictForm: form ?? null, verdictRepaired: isRepaired }
}

export function toEventFields(event: SystemEvent): EventFields {
  const { agentId, sessionKey, text, source, trusted, wakes, at, deliveryId, consumedAt } = event
  return {
    agentId,
    sessionKey,
    text,
    source,
    trusted,
    wakes,
    at: toIsoTime(at),
    deliveryId: deliveryId ?? null,
    consumedAt: consumedAt === undefined ? null : toIsoTime(consumedAt),
  }
}

/** The fields of a session without its transcript. */
export function toSessionHead({ sessionKey, agentId, updatedAt, recipient }: Session): SessionFields {
  return {
    sessionKey,
    agentId,
    updatedAt: toIsoTime(updatedAt),
    recipient: recipient === undefined ? null : { channel: recipient.channel, to: recipient.to ?? null },
  }
}

export function toSessionFields(
  session: Session,
  messages: readonly Message[],
): SessionFields & { messages: MessageFields[] } {
  return {
    ...toSessionHead(session),
    messages: messages.map(({ role, text, runId, at }) => ({ role, text, runId, at: toIsoTime(at) })),
  }
}

/** A moment in ISO 8601. */
export function toIsoTime(at: number): string {
  return new Date(at).toISOString()
}

/** Names all gateways with their generations, and says what to do; undefined if all have the same generation. */
export function describeGenerationDifference(nodes: readonly NodeRecord[]): string | undefined {
  const generations = new Set(nodes.map(({ generation }) => generation))
  if (generations.size < 2) return undefined
  const named = nodes.map(({ id, version, generation }) => `${id} (${version}): ${generation}`)
  return `The gateways on this store have different generations: ${named.join(', ')}. If no rollout is under way, make their files alike.`
}
