// The step `deliver` sends the reply to a channel, message by message. A message is repeated only if the channel did not accept it, if the channel drops repeats, or after a crash during the send.
import { createHash } from 'node:crypto'
import { type Alert, type Heartbeat, toChannelKey } from '../model/action.ts'
import type { Channel, SendResult } from '../model/channel.ts'
import type { ClaimedJob, Post } from '../model/job.ts'
import type { Clock, Store } from '../store/store.ts'
import type { Agent } from './agents.ts'
import { toPosted, whyNotPosted } from './acknowledgement.ts'
import { cut } from '../base/text.ts'
import { withDeadline } from '../base/time.ts'
import type { Recorded, StepOutcome } from './retry.ts'
import { type DefaultRoute, resolveRoute, type Route } from './route.ts'
import { type AgentPlan, mainSessionKey, toRunName, toRunStep } from './plan.ts'

/** Milliseconds that a channel has to answer. */
const sendTimeoutMs = 60_000

/** Characters of a reply that are posted. The run keeps all of it. */
const maxReplyChars = 30_000

/** The dependencies of `deliver`. */
export type DeliveryTools = {
  readonly store: Pick<Store, 'session'>
  /** By name; a channel that is not in it is not configured. */
  readonly channels: ReadonlyMap<string, Channel>
  readonly defaultRoute: DefaultRoute | undefined
  readonly clock: Clock
  /** Saves the messages of a reply with their present states. False: the lease of the job is lost. */
  readonly savePosts: (posts: readonly Post[]) => Promise<boolean>
  /** False: another worker may have the job since the posts were saved. */
  readonly mayAct: () => boolean
}

type Posting = Pick<DeliveryTools, 'clock' | 'savePosts' | 'mayAct'> & {
  readonly job: ClaimedJob
  readonly signal: AbortSignal
  readonly run: { readonly id: string; readonly agentId: string; readonly name: string }
}

export async function deliver(
  { planned, job, agent }: { planned: AgentPlan | Heartbeat | Alert; job: ClaimedJob; agent: Agent },
  tools: DeliveryTools,
  signal: AbortSignal,
): Promise<StepOutcome> {
  const run = toRunStep(job)
  if (run?.state === 'forwarded') return toSkipped('OpenClaw performed the run and delivers the reply itself.')
  if (run?.state === 'skipped') return toSkipped('The run was skipped, so there is no reply.')
  const reply = planned.kind === 'alert' ? planned.text : (run?.result ?? '')
  const quiet =
    planned.kind === 'alert'
      ? undefined
      : whyNotPosted(reply, planned.kind === 'heartbeat' ? agent.heartbeat : undefined)
  if (quiet !== undefined) return toSkipped(quiet)

  const found = await findChannel(planned, job, tools)
  if (found.kind === 'none') {
    // nobody asked for the reply of a heartbeat, so this is not a failure
    return planned.kind === 'heartbeat'
      ? toSkipped(found.detail)
      : { kind: 'permanent', status: 'error', detail: found.detail, quotes: found.quotes }
  }
  const posts = toPosts(cut(toPosted(reply), maxReplyChars), found, job)
  const name = planned.kind === 'agent' ? toRunName(planned) : planned.kind
  const outcome = await postAll(posts, found.channel, {
    job,
    clock: tools.clock,
    savePosts: tools.savePosts,
    mayAct: tools.mayAct,
    signal,
    run: { id: job.id, agentId: planned.agentId, name },
  })
  const isExplicit = planned.kind === 'agent' && planned.action.channel !== 'last'
  if (outcome.kind !== 'recorded' || !isExplicit) return outcome
  return { ...outcome, recipient: { channel: found.name, to: found.to } }
}

const noRoute: Pick<Alert, 'channel' | 'to'> = {}

/** A reply that was partly posted continues on the same channel, even if the configuration has changed. */
async function findChannel(
  planned: AgentPlan | Heartbeat | Alert,
  job: ClaimedJob,
  { store, channels, defaultRoute }: Pick<DeliveryTools, 'store' | 'channels' | 'defaultRoute'>,
): Promise<Route> {
  const [begun] = job.posts
  if (begun !== undefined) {
    const channel = channels.get(begun.channel)
    if (channel !== undefined) return { kind: 'route', channel, name: begun.channel, to: begun.to }
    const detail = `No route: the first messages of the reply went to ${begun.channel}, and ${toChannelKey(begun.channel)} is no longer configured.`
    return { kind: 'none', detail }
  }
  const main = await store.session({ agentId: planned.agentId, sessionKey: mainSessionKey })
  const { channel = 'last', to } =
    planned.kind === 'agent' ? planned.action : planned.kind === 'alert' ? planned : noRoute
  return resolveRoute({ channel, to }, { last: main?.recipient, defaultRoute, channels })
}

/** The messages of a reply. Messages that are stored already do not change. */
function toPosts(
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

/**
 * Sends the messages in order. Each one, also the only one, is marked under the lease before it is sent: the process may be killed during
 * the send. A process that was paused for longer than its lease sends nothing.
 */
async function postAll(posts: readonly Post[], channel: Channel, posting: Posting): Promise<StepOutcome> {
  const { clock, savePosts, job } = posting
  let written = posts
  const save = (changed: Post): Promise<boolean> => {
    written = replace(written, { ...changed, at: clock() })
    return savePosts(written)
  }
  for (const post of posts) {
    if (post.state === 'sent') continue
    const begun = toBegun(post, channel)
    // marked again after a pause that was longer than the lease: the store decides whether the job is still ours
    let isOurs = await save(begun)
    while (isOurs && !posting.mayAct()) isOurs = await save(begun)
    if (!isOurs) return { kind: 'aborted' }
    const result = await postOne(begun, channel, posting)
    if (result.kind === 'sent') {
      written = replace(written, { ...begun, state: 'sent', id: result.id, at: clock() })
      continue
    }
    const state = toStateAfter(result, channel, post)
    if (state !== 'sending' && !(await save({ ...begun, state }))) return { kind: 'aborted' }
    if (result.kind === 'aborted') return { kind: 'aborted' }
    return state === 'unknown' ? toUnknown(result.detail, post, job) : toFailure(result, post, state)
  }
  return toSent(written)
}

/** A message that an earlier attempt left in the state `sending` may have arrived. */
function toBegun(post: Post, { dedupes }: Channel): Post {
  const mayBeTwice = post.mayBeTwice === true || (post.state === 'sending' && !dedupes)
  return { ...post, state: 'sending', ...(mayBeTwice ? { mayBeTwice } : {}) }
}

type Unsent = Exclude<SendResult, { kind: 'sent' }> | { readonly kind: 'aborted'; readonly isBegun: boolean }

/** The state after a failed attempt. A message that may have arrived is sent again only if the channel drops repeats, or repeats anyway. */
function toStateAfter(result: Unsent, { dedupes, repeatsUnknown = false }: Channel, before: Post): Post['state'] {
  if (result.kind === 'ambiguous') return dedupes || repeatsUnknown ? 'sending' : 'unknown'
  // an earlier attempt may have arrived, and the channel drops a repeat only for some minutes
  if (dedupes && before.state === 'sending') return 'sending'
  return result.kind === 'aborted' && result.isBegun ? 'sending' : 'waiting'
}

async function postOne(
  { to, text, nonce }: Post,
  channel: Channel,
  { signal, run }: Posting,
): Promise<SendResult | { kind: 'aborted'; isBegun: boolean }> {
  let isBegun = false
  const ended = await withDeadline({ outer: signal, ms: sendTimeoutMs }, (limit) => {
    isBegun = true
    return channel.send({ to, text, nonce, signal: limit, run })
  })
  if (ended.kind === 'aborted' && isBegun && !channel.dedupes) {
    return { kind: 'ambiguous', detail: 'The gateway stopped before the answer came.' }
  }
  if (ended.kind === 'aborted') return { kind: 'aborted', isBegun }
  if (ended.kind === 'timeout')
    return { kind: 'ambiguous', detail: `There was no answer in ${sendTimeoutMs / 1_000} s.` }
  return ended.value
}

/** A repeat could post the message twice; only a person can check. */
function toUnknown(why: string, post: Post, { deliveryId }: ClaimedJob): StepOutcome {
  const again = deliveryId === undefined ? '' : ` If it did not arrive, "hookloom retry ${deliveryId}" sends it.`
  const unknown = `it is not known whether the reply arrived, and it was not sent again. ${why}${again}`
  return { kind: 'permanent', status: 'error', ...toDetails(post, unknown) }
}

function toFailure(result: Exclude<SendResult, { kind: 'sent' }>, post: Post, state: Post['state']): StepOutcome {
  const details = toDetails(post, result.detail)
  switch (result.kind) {
    case 'rate-limited':
    case 'transient':
      return {
        kind: state === 'sending' ? 'transient' : 'unavailable',
        ...details,
        retryAfterMs: result.retryAfterMs,
      }
    // only for a channel that drops repeats, or repeats anyway
    case 'ambiguous':
      return { kind: 'transient', ...details }
    case 'permanent':
      return { kind: 'permanent', status: 'error', ...details }
  }
}

/** The record names the recipient; the log does not, because a phone number or an address is personal. */
function toDetails(post: Post, why: string): { detail: string; logged: string } {
  const { channel, to } = post
  const hidden = to === undefined || to === '' ? why : why.replaceAll(to, 'the recipient')
  return { detail: `${toPlace(post)}: ${why}`, logged: `${channel}: ${hidden}` }
}

function toSent(posts: readonly Post[]): Recorded {
  const ids = posts.map(({ id = '' }) => id)
  const [first] = posts
  const place = first === undefined ? '' : toPlace(first)
  const count = posts.length === 1 ? '' : ` in ${posts.length} messages`
  return {
    kind: 'recorded',
    step: {
      state: 'done',
      detail: `sent to ${place} as ${ids.join(', ')}${count}${toDoubt(posts)}`,
      result: ids.join(' '),
    },
    posts,
  }
}

function toDoubt(posts: readonly Post[]): string {
  const parts = posts.filter(({ mayBeTwice }) => mayBeTwice).map(({ part }) => part + 1)
  if (parts.length === 0) return ''
  const which = parts.length === 1 ? `Message ${parts.join()}` : `Each of the messages ${parts.join(', ')}`
  return `. ${which} may have arrived twice: an earlier attempt was cut off before its result was recorded.`
}

function toSkipped(detail: string): Recorded {
  return { kind: 'recorded', step: { state: 'skipped', detail } }
}

function replace(posts: readonly Post[], changed: Post): readonly Post[] {
  return posts.map((post) => (post.part === changed.part ? changed : post))
}

function toPlace({ channel, to }: Pick<Post, 'channel' | 'to'>): string {
  return to === undefined ? channel : `${channel} ${to}`
}

/** The same for every attempt of one message, and different for every other message. */
function toNonce(parts: readonly (string | number | undefined)[]): string {
  return createHash('sha256')
    .update(JSON.stringify(parts.map((part) => part ?? null)))
    .digest('hex')
    .slice(0, 25)
}
