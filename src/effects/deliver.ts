// The step `deliver`: the reply goes to a channel. It is repeated only where the channel surely took nothing or drops repeats, or after a crash or stop in mid-send.
import { createHash } from 'node:crypto'
import type { SendResult } from '../model/channel.ts'
import type { ClaimedJob } from '../model/job.ts'
import { whyNotPosted } from './acknowledgement.ts'
import { withDeadline } from './deadline.ts'
import type { StepOutcome, StepTools } from './outcome.ts'
import type { AgentPlan } from './prompt.ts'
import { resolveRoute } from './route.ts'
import { toReply, toRunName } from './summary.ts'

/** A channel that has not answered by then will not. */
const sendTimeoutMs = 60_000

export async function deliver(
  planned: AgentPlan,
  job: ClaimedJob,
  tools: StepTools,
  signal: AbortSignal,
): Promise<StepOutcome> {
  const { action, agentId } = planned
  const text = toReply(job)
  const quiet = whyNotPosted(text)
  if (quiet !== undefined) return { kind: 'recorded', step: { state: 'skipped', detail: quiet } }
  const route = resolveRoute({
    channel: action.channel,
    to: action.to,
    defaultRoute: tools.defaultRoute,
    configured: tools.channels,
  })
  if (route.kind === 'none') return { kind: 'permanent', status: 'error', detail: route.detail }
  const channel = tools.channels.get(route.channel)
  if (channel === undefined) throw new Error(`channels.${route.channel} went away`)
  const nonce = toNonce(job.id, route.channel, route.to)
  const ended = await withDeadline({ outer: signal, ms: sendTimeoutMs }, (limit) =>
    channel.send({
      to: route.to,
      text,
      nonce,
      signal: limit,
      run: { id: job.id, agentId, name: toRunName(planned) },
    }),
  )
  if (ended.kind === 'aborted') return ended
  const silence: SendResult = { kind: 'ambiguous', detail: `no answer in ${sendTimeoutMs / 1_000} s` }
  const place = route.to === undefined ? route.channel : `${route.channel} ${route.to}`
  return toSendOutcome(ended.kind === 'timeout' ? silence : ended.value, place, channel.dedupes)
}

function toSendOutcome(result: SendResult, place: string, dedupes: boolean): StepOutcome {
  switch (result.kind) {
    case 'sent':
      return {
        kind: 'recorded',
        step: { state: 'done', detail: `sent to ${place} as ${result.id}`, result: result.id },
      }
    case 'rate-limited':
    case 'transient':
      return { kind: result.kind, detail: `${place}: ${result.detail}`, retryAfterMs: result.retryAfterMs }
    case 'ambiguous':
      if (dedupes) return { kind: 'transient', detail: `${place}: ${result.detail}` }
      // repeating it could post the reply twice, and only a person can look
      return {
        kind: 'permanent',
        status: 'error',
        detail: `${place}: it is not known whether the reply arrived (${result.detail}). It was not sent again.`,
      }
    case 'permanent':
      return { kind: 'permanent', status: 'error', detail: `${place}: ${result.detail}` }
  }
}

/** The same for every attempt of one reply, and for no other. */
function toNonce(runId: string, channel: string, to: string | undefined): string {
  return createHash('sha256')
    .update(JSON.stringify([runId, channel, to ?? null]))
    .digest('hex')
    .slice(0, 25)
}
