// The step `deliver`: the reply goes to a channel, where posts.ts sends it message by message.
import { createHash } from 'node:crypto'
import { type Alert, type Heartbeat, mainSessionKey, toChannelKey } from '../../../core/model/action.ts'
import type { Outgoing, TextFormat } from '../../../model/channel.ts'
import { isPostOf, type Post, type Recipient, type Step, type StepName } from '../../../model/job.ts'
import { cut } from '../../../base/text.ts'
import { removeAcknowledgement, explainSilence } from '../acknowledgement.ts'
import { type AgentPlan, countHops, findTarget, type MessagePlan, toRunName, findRunStep } from '../plan.ts'
import { postAll } from '../posts.ts'
import type { StepRecord, StepOutcome } from '../retry.ts'
import type { Route } from '../route.ts'
import { defineStep, type JobContext, type StepInput } from '../step.ts'
import { findRoute } from '../targets.ts'

/** The maximum number of characters of a reply that are posted. The run keeps the whole reply. */
const maxReplyChars = 30_000

export const deliverStep = defineStep({
  about:
    'The reply, or the message of the action `deliver`, goes to a channel, in one message or several. If `to` is a list, `deliver` is the step of its first recipient, and `deliver-2` and so on are those of the others.',
  of: ['agent', 'deliver', 'heartbeat', 'alert'],
  perform: deliver,
  retry: 'channels.retry',
  reportsFirst: true,
  isLogged: true,
  describeDeath: ({ why }) => ({ status: 'not delivered', text: why }),
})

type Sent = AgentPlan | MessagePlan | Heartbeat | Alert

function readText(planned: Sent, run: Step | undefined): string {
  if (planned.kind === 'alert') return planned.text
  return planned.kind === 'deliver' ? planned.action.message : (run?.result ?? '')
}

async function deliver(input: StepInput<Sent>, context: JobContext): Promise<StepOutcome> {
  const { name: step, planned, job, agent } = input
  const run = findRunStep(job)
  if (run?.state === 'forwarded') return skip('Another gateway performed the run and delivers the reply itself.')
  if (run?.state === 'skipped') return skip('The run was skipped, so there is no reply.')
  const reply = readText(planned, run)
  const isReply = planned.kind === 'agent' || planned.kind === 'heartbeat'
  const silence = isReply
    ? explainSilence(reply, planned.kind === 'heartbeat' ? agent.heartbeat : undefined)
    : undefined
  if (silence !== undefined) return skip(silence)

  const known = job.posts.filter((post) => isPostOf(post, step))
  const failed = known.find((post) => post.failed !== undefined)?.failed
  if (failed !== undefined) return { kind: 'permanent', status: 'error', detail: failed, quotes: true }
  const found = await findChannel(input, known, context)
  if (found.kind === 'none') {
    // no caller waits for the reply of a heartbeat, and an operator without channels expects no reply: this is not a failure
    return planned.kind === 'heartbeat' || found.isWithoutChannels === true
      ? skip(found.detail)
      : { kind: 'permanent', status: 'error', detail: found.detail, quotes: found.quotes }
  }
  const text = cut(isReply ? removeAcknowledgement(reply) : reply, maxReplyChars)
  const format: TextFormat = planned.kind === 'alert' ? 'plain' : 'markdown'
  const posts = buildPosts({ text, format }, found, { jobId: job.id, step, known })
  const isOneOfSeveral = planned.kind === 'agent' && planned.action.alsoTo !== undefined
  const name = 'origin' in planned ? toRunName(planned) : planned.kind
  const author = { id: job.id, agentId: planned.agentId, name, hops: countHops(job) + 1 }
  const outcome = await postAll({ posts, channel: found.channel, job, run: author, format, isOneOfSeveral }, context)
  const named = step === 'deliver' ? findNamedRecipient(planned) : undefined
  return outcome.kind !== 'recorded' || named === undefined ? outcome : { ...outcome, recipient: named }
}

/**
 * Only a turn of the main session that names a channel and a recipient changes the meaning of `last`. Otherwise a request could redirect the
 * replies of the main session and of every hook. A run that is only filed under the default key is not a turn of the main session.
 */
function findNamedRecipient(planned: Sent): Recipient | undefined {
  if (planned.kind !== 'agent' || planned.sessionKey !== mainSessionKey || planned.sharesSession) return undefined
  const { channel, to } = planned.action
  return channel === 'last' || to === undefined ? undefined : { channel, to }
}

const noRoute: Pick<Alert, 'channel' | 'to'> = {}

/** A reply that was partly posted continues on the same channel, even if the configuration has changed. */
async function findChannel(
  { name, planned }: StepInput<Sent>,
  [begun]: readonly Post[],
  context: JobContext,
): Promise<Route> {
  if (begun !== undefined) {
    const channel = context.channels.get(begun.channel)
    if (channel !== undefined) return { kind: 'route', channel, name: begun.channel, to: begun.to }
    const detail = `No route: the first messages of the reply went to ${begun.channel}, and ${toChannelKey(begun.channel)} is no longer configured.`
    return { kind: 'none', detail }
  }
  const target = 'action' in planned ? findTarget(planned, name) : planned.kind === 'alert' ? planned : noRoute
  const place = 'origin' in planned ? planned.origin.place : undefined
  return findRoute(target, { agentId: planned.agentId, place }, context)
}

/** The messages of a reply. Messages that are already stored do not change. */
function buildPosts(
  { text: whole, format }: Pick<Outgoing, 'text' | 'format'>,
  { channel, name, to }: Extract<Route, { kind: 'route' }>,
  { jobId, step, known }: { jobId: string; step: StepName; known: readonly Post[] },
): readonly Post[] {
  const further = step === 'deliver' ? undefined : step
  return channel.split(whole, format).map((text, part) => {
    const before = known.find((post) => post.part === part)
    if (before !== undefined) return before
    // two recipients of a list may be the same
    const nonce = toNonce([jobId, name, to, part, ...(further === undefined ? [] : [further])])
    return { ...(further && { step: further }), part, channel: name, to, nonce, text, state: 'waiting', at: 0 }
  })
}

function skip(detail: string): StepRecord {
  return { kind: 'recorded', step: { state: 'skipped', detail } }
}

/** The nonce of a message: the same for each attempt to send it, and different from that of any other message. */
function toNonce(parts: readonly (string | number | undefined)[]): string {
  return createHash('sha256')
    .update(JSON.stringify(parts.map((part) => part ?? null)))
    .digest('hex')
    .slice(0, 25)
}
