// The step `deliver`: the reply goes to a channel, where posts.ts sends it message by message.
import { createHash } from 'node:crypto'
import { type Alert, type Heartbeat, mainSessionKey, toChannelKey } from '../../model/action.ts'
import type { ClaimedJob, Post, Recipient, Step } from '../../model/job.ts'
import { cut } from '../../base/text.ts'
import { removeAcknowledgement, explainSilence } from '../acknowledgement.ts'
import { type AgentPlan, countHops, type MessagePlan, toRunName, findRunStep } from '../plan.ts'
import { postAll } from '../posts.ts'
import type { StepRecord, StepOutcome } from '../retry.ts'
import { resolveRoute, type Route } from '../route.ts'
import { defineStep, type JobContext, type StepInput } from '../step.ts'

/** Characters of a reply that are posted. The run keeps all of it. */
const maxReplyChars = 30_000

export const deliverStep = defineStep({
  about: 'The reply, or the message of the action `deliver`, goes to a channel, in one message or several.',
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

async function deliver({ planned, job, agent }: StepInput<Sent>, context: JobContext): Promise<StepOutcome> {
  const run = findRunStep(job)
  if (run?.state === 'forwarded') return skip('OpenClaw performed the run and delivers the reply itself.')
  if (run?.state === 'skipped') return skip('The run was skipped, so there is no reply.')
  const reply = readText(planned, run)
  const isReply = planned.kind === 'agent' || planned.kind === 'heartbeat'
  const silence = isReply
    ? explainSilence(reply, planned.kind === 'heartbeat' ? agent.heartbeat : undefined)
    : undefined
  if (silence !== undefined) return skip(silence)

  const found = await findChannel(planned, job, context)
  if (found.kind === 'none') {
    // nobody waits for the reply of a heartbeat, and an operator without channels expects no reply: this is not a failure
    return planned.kind === 'heartbeat' || found.isWithoutChannels === true
      ? skip(found.detail)
      : { kind: 'permanent', status: 'error', detail: found.detail, quotes: found.quotes }
  }
  const posts = buildPosts(cut(isReply ? removeAcknowledgement(reply) : reply, maxReplyChars), found, job)
  const name = 'origin' in planned ? toRunName(planned) : planned.kind
  const author = { id: job.id, agentId: planned.agentId, name, hops: countHops(job) + 1 }
  const outcome = await postAll({ posts, channel: found.channel, job, run: author }, context)
  const named = findNamedRecipient(planned)
  return outcome.kind !== 'recorded' || named === undefined ? outcome : { ...outcome, recipient: named }
}

/**
 * Only a turn of the main session that names a channel and a recipient changes what `last` means. Otherwise a request could move the
 * replies of the main session and of every hook. A run that is only filed under the default key is not a turn of the main session.
 */
function findNamedRecipient(planned: Sent): Recipient | undefined {
  if (planned.kind !== 'agent' || planned.sessionKey !== mainSessionKey || planned.sharesSession) return undefined
  const { channel, to } = planned.action
  return channel === 'last' || to === undefined ? undefined : { channel, to }
}

const noRoute: Pick<Alert, 'channel' | 'to'> = {}

/** A reply that was partly posted continues on the same channel, even if the configuration has changed. */
async function findChannel(planned: Sent, job: ClaimedJob, { store, channels, config }: JobContext): Promise<Route> {
  const [begun] = job.posts
  if (begun !== undefined) {
    const channel = channels.get(begun.channel)
    if (channel !== undefined) return { kind: 'route', channel, name: begun.channel, to: begun.to }
    const detail = `No route: the first messages of the reply went to ${begun.channel}, and ${toChannelKey(begun.channel)} is no longer configured.`
    return { kind: 'none', detail }
  }
  const main = await store.session({ agentId: planned.agentId, sessionKey: mainSessionKey })
  const { channel = 'last', to } = 'action' in planned ? planned.action : planned.kind === 'alert' ? planned : noRoute
  const place = 'origin' in planned ? planned.origin.place : undefined
  return resolveRoute(
    { channel, to },
    { last: main?.recipient, defaultRoute: config.channels.default, channels, place },
  )
}

/** The messages of a reply. Messages that are stored already do not change. */
function buildPosts(
  reply: string,
  { channel, name, to }: Extract<Route, { kind: 'route' }>,
  { id, posts }: ClaimedJob,
): readonly Post[] {
  return channel.split(reply).map((text, part) => {
    const known = posts.find((post) => post.part === part)
    if (known !== undefined) return known
    return { part, channel: name, to, nonce: toNonce([id, name, to, part]), text, state: 'waiting', at: 0 }
  })
}

function skip(detail: string): StepRecord {
  return { kind: 'recorded', step: { state: 'skipped', detail } }
}

/** The same for every attempt of one message, and different for every other message. */
function toNonce(parts: readonly (string | number | undefined)[]): string {
  return createHash('sha256')
    .update(JSON.stringify(parts.map((part) => part ?? null)))
    .digest('hex')
    .slice(0, 25)
}
