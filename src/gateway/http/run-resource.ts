// A run as the caller that started it sees it. It has no text for the operator: no recipient, no error of a provider, and the reply only where
// the mapping shows it.
import { hash } from 'node:crypto'
import { isJsonObject, tryParseJson } from '../../base/json.ts'
import { formatCommand } from '../../base/shell.ts'
import { toIsoTime, toVerdictFields } from '../deliveries/records.ts'
import type { Answer } from '../../core/mapping/answer.ts'
import type { RunResource } from '../../model/api/run.ts'
import { addUsages, hasEnded, isEndedEarly, type Job, toShownPostState, type Usage } from '../../model/job.ts'

/** The seconds after which a client asks again. */
export const retryAfterHeaders = { 'retry-after': '5' }

/** The states for callers: they need not know how an operator ended a run. */
export const shownStates = {
  queued: 'queued',
  running: 'running',
  done: 'done',
  dead: 'dead',
  superseded: 'superseded',
  cancelled: 'cancelled',
  expired: 'expired',
  dropped: 'cancelled',
  skipped: 'cancelled',
} as const satisfies Record<Job['state'], string>

/** `waits`: why a queued run waits. */
export function toRunAnswer(job: Job, waits: string | undefined): Answer {
  const headers = { 'cache-control': 'no-store', ...(hasEnded(job.state) ? {} : retryAfterHeaders) }
  return { status: 200, body: JSON.stringify(toRunResource(job, waits)), headers }
}

function toRunResource(job: Job, waits: string | undefined): RunResource & { ok: true } {
  const { id, planned, state, deliveryId, createdAt, attempts, steps } = job
  const run = steps.find(({ name }) => name === 'run')
  const showsReply = planned.kind === 'agent' && planned.result === 'text'
  return {
    ok: true,
    runId: id,
    deliveryId: deliveryId ?? null,
    state: shownStates[state],
    waits: waits ?? null,
    reason: describeReason(job),
    createdAt: toIsoTime(createdAt),
    attempts,
    ...toVerdictFields(job),
    steps: steps.map(({ name, state: stepState, startedAt = undefined, at }) => ({
      name,
      state: stepState,
      startedAt: toIsoTime(startedAt ?? at),
      at: toIsoTime(at),
    })),
    receipts: job.posts.map((post) => ({
      step: post.step ?? 'deliver',
      part: post.part,
      channel: post.channel,
      state: toShownPostState(post, job),
      messageId: post.id ?? null,
      at: post.state === 'waiting' ? null : toIsoTime(post.at),
    })),
    usage: toUsageFields(addUsages(steps.flatMap(({ usage }) => usage ?? []))),
    ...(showsReply ? { reply: (run?.state === 'done' ? run.result : undefined) ?? null } : {}),
  }
}

/**
 * Why a run ended without a result. The reason of a dead run may quote a provider or a file, and that of a cancelled run names who cancelled it,
 * so only the operator reads these.
 */
function describeReason({ id, state, lastError }: Job): string | null {
  if (state === 'dead') return `The run failed. "${formatCommand`hookloom show ${id}`}" shows why.`
  if (shownStates[state] === 'cancelled' && state !== 'skipped') return 'The run was cancelled.'
  return isEndedEarly(state) ? (lastError ?? null) : null
}

/** The cost is missing if no call has one. */
function toUsageFields(usage: Usage | undefined): RunResource['usage'] {
  if (usage === undefined) return null
  const { inputTokens, outputTokens, costUsd } = usage
  return { inputTokens, outputTokens, ...(costUsd === undefined ? {} : { costUsd }) }
}

/** The id of an event of a stream. The same text has the same id on all gateways, so that a client can continue at another gateway. */
export function toEventId(body: string): string {
  return hash('sha256', body, 'base64url').slice(0, 16)
}

/** Reads the id of the delivery from an answer that accepts it: from the receipt, or from the header if a mapping sets the answer. */
export function readReceipt({ status, body, headers }: Answer): { deliveryId: string; isPending: boolean } | undefined {
  const custom = headers?.['x-delivery-id']
  if (custom !== undefined) return { deliveryId: custom, isPending: false }
  const receipt = status === 200 && body !== undefined ? tryParseJson(body) : undefined
  if (!isJsonObject(receipt) || typeof receipt['deliveryId'] !== 'string') return undefined
  return { deliveryId: receipt['deliveryId'], isPending: receipt['status'] === 'pending' }
}

/** The receipt with its runs, which have ended. An answer that a mapping sets stays the same. */
export function addRuns(receipt: Answer, runs: readonly Job[]): Answer {
  const fields = tryParseJson(receipt.body ?? '')
  if (receipt.headers?.['x-delivery-id'] !== undefined || !isJsonObject(fields)) return receipt
  const shown = runs.map((run) => toRunResource(run, undefined))
  const headers = { ...receipt.headers, 'cache-control': 'no-store', 'preference-applied': 'return=representation' }
  return { ...receipt, headers, body: JSON.stringify({ ...fields, runs: shown }) }
}

/** Names the wait, and what `addRuns` has applied before. */
export function addPreferenceApplied(answer: Answer, seconds: number): Answer {
  const { 'preference-applied': before, ...headers } = answer.headers ?? {}
  const applied = [`wait=${seconds}`, ...(before === undefined ? [] : [before])].join(', ')
  return { ...answer, headers: { ...headers, 'preference-applied': applied } }
}
