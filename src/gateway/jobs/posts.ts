// Sends the messages of a reply, one after the other. A message is repeated only if the channel did not accept it, if the channel drops
// repeats, if the operator accepts repeats (`onUnknown`), or after a crash or an exception during the send.
import type { Channel, Outgoing, SendResult, TextFormat } from '../../model/channel.ts'
import type { ClaimedJob, Post, StoredPost } from '../../model/job.ts'
import { toErrorName, toErrorText } from '../../base/exceptions.ts'
import { withDeadline } from '../../base/time.ts'
import { formatCommand } from '../../base/shell.ts'
import { findRunStep } from './plan.ts'
import { defaultRetry, type Failure, type StepRecord, type StepOutcome } from './retry.ts'
import type { JobContext } from './step.ts'

/** The time limit for the answer of a channel, in milliseconds. */
const sendTimeoutMs = 60_000

/** A reply: its messages, some of which may have been sent already, and its route. */
type Reply = {
  readonly posts: readonly Post[]
  readonly channel: Channel
  readonly job: ClaimedJob
  readonly run: Outgoing['run']
  readonly format: TextFormat
  /** Whether the job has other recipients, so that it does not end if this recipient fails permanently. */
  readonly isOneOfSeveral: boolean
}

/**
 * Sends the messages in order. Each one, even a single one, is marked under the lease before it is sent: the process may be killed during
 * the send. A process that was paused for longer than its lease asks the store again before it sends.
 */
export async function postAll(
  { posts, channel, job, run, format, isOneOfSeveral }: Reply,
  { clock, lease, log, retry = defaultRetry }: Pick<JobContext, 'clock' | 'lease' | 'log' | 'retry'>,
): Promise<StepOutcome> {
  let current = sortByStep([...job.posts.filter(({ step }) => step !== posts[0]?.step), ...posts])
  const save = (changed: Post): Promise<boolean> => {
    current = replace(current, { ...changed, at: clock() })
    return lease.report({ posts: toStoredPosts(current, job) })
  }
  for (const post of posts) {
    if (post.state === 'sent') continue
    const begun = markSending(post, channel)
    // after a pause that was longer than the lease, the message is marked again: the store decides whether this gateway still has the job
    let isOurs = await save(begun)
    while (isOurs && !lease.isConfirmed()) isOurs = await save(begun)
    if (!isOurs) return { kind: 'aborted' }
    const maybeSince = post.state === 'sending' ? job.createdAt : undefined
    const sending = postOne(begun, channel, { run, format, signal: lease.signal, maybeSince })
    const result = await sending.catch((thrown: unknown): SendException => {
      if (!isOneOfSeveral || lease.signal.aborted) throw thrown
      // not thrown further: the step of the next recipient writes all messages of the job, so it must know the state of these
      log.warn({ jobId: job.id, thrown: toErrorName(thrown) }, 'a channel threw')
      return { kind: 'threw', detail: `threw ${toErrorText(thrown)}` }
    })
    if (result.kind === 'sent') {
      current = replace(current, { ...begun, state: 'sent', id: result.id, at: clock() })
      continue
    }
    const state = chooseStateAfter(result, channel, post)
    if (result.kind === 'aborted') {
      if (state !== 'sending') await save({ ...begun, state })
      return { kind: 'aborted' }
    }
    const failure = toFailure(result, post, { state, dedupes: channel.dedupes, job })
    if (!isOneOfSeveral) return state === 'sending' || (await save({ ...begun, state })) ? failure : { kind: 'aborted' }
    const { tries = 0 } = post
    const isCounted = failure.kind === 'transient'
    const isLast = isCounted && tries + 1 >= retry.attempts
    const counted = isCounted ? { tries: tries + 1 } : {}
    const failed = failure.kind === 'permanent' || isLast ? { failed: failure.detail } : {}
    if (!(await save({ ...begun, state, ...counted, ...failed }))) return { kind: 'aborted' }
    const stored = { posts: toStoredPosts(current, job) }
    // permanent after the last attempt: attempts for the other recipients continue, and would repeat this one without end
    if (isLast) {
      const { detail, logged, quotes } = failure
      return { kind: 'permanent', status: 'error', detail, logged, quotes, ...stored }
    }
    return isCounted ? { ...failure, ...stored, tries } : { ...failure, ...stored }
  }
  return recordPosts(current, { job, posts: current.filter(({ step }) => step === posts[0]?.step) })
}

/** A message that an earlier attempt left in the state `sending` may have arrived. */
function markSending(post: Post, { dedupes }: Channel): Post {
  const mayBeTwice = post.mayBeTwice === true || (post.state === 'sending' && !dedupes)
  return { ...post, state: 'sending', ...(mayBeTwice ? { mayBeTwice } : {}) }
}

/** An exception of a channel. `detail`: its text, which may quote anything. */
type SendException = { readonly kind: 'threw'; readonly detail: string }
type FailedSend =
  | Exclude<SendResult, { kind: 'sent' }>
  | { readonly kind: 'aborted'; readonly isBegun: boolean }
  | SendException

/**
 * The state of a message after a failed attempt. A message that may have arrived is sent again only if the channel drops repeats, if the
 * operator accepts repeats, or if the channel threw.
 */
function chooseStateAfter(
  result: FailedSend,
  { dedupes, repeatsUnknown = false }: Channel,
  before: Post,
): Post['state'] {
  if (result.kind === 'threw') return 'sending'
  if (result.kind === 'ambiguous') return dedupes || repeatsUnknown ? 'sending' : 'unknown'
  // an earlier attempt may have arrived, and the channel drops a repeat only for some minutes
  if (dedupes && before.state === 'sending') return 'sending'
  return result.kind === 'aborted' && result.isBegun ? 'sending' : 'waiting'
}

async function postOne(
  { to, text, nonce }: Post,
  channel: Channel,
  { signal, run, format, maybeSince }: Pick<Outgoing, 'signal' | 'run' | 'format' | 'maybeSince'>,
): Promise<SendResult | { kind: 'aborted'; isBegun: boolean }> {
  let isBegun = false
  const ended = await withDeadline({ outer: signal, ms: sendTimeoutMs }, (limit) => {
    isBegun = true
    return channel.send({ to, text, format, nonce, signal: limit, run, maybeSince })
  })
  if (ended.kind === 'aborted' && isBegun && !channel.dedupes) {
    return { kind: 'ambiguous', detail: 'The gateway stopped before the answer came.' }
  }
  if (ended.kind === 'aborted') return { kind: 'aborted', isBegun }
  if (ended.kind === 'timeout')
    return { kind: 'ambiguous', detail: `There was no answer in ${sendTimeoutMs / 1_000} s.` }
  return ended.value
}

function toFailure(
  result: Exclude<FailedSend, { kind: 'aborted' }>,
  post: Post,
  { job, ...given }: Parameters<typeof failPost>[2] & { readonly job: ClaimedJob },
): Failure {
  if (result.kind === 'threw') return { kind: 'transient', ...describeFailure(post, result.detail), quotes: true }
  return given.state === 'unknown' ? failUnknown(result.detail, post, job) : failPost(result, post, given)
}

/** A repeat could post the message twice; only a person can check. */
function failUnknown(why: string, post: Post, { deliveryId }: ClaimedJob): Failure {
  const again =
    deliveryId === undefined ? '' : ` If it did not arrive, "${formatCommand`hookloom retry ${deliveryId}`}" sends it.`
  const unknown = `it is not known whether the reply arrived, and it was not sent again. ${why}${again}`
  return { kind: 'permanent', status: 'error', ...describeFailure(post, unknown) }
}

function failPost(
  result: Exclude<SendResult, { kind: 'sent' }>,
  post: Post,
  { state, dedupes }: { state: Post['state']; dedupes: Channel['dedupes'] },
): Failure {
  // if `dedupes` is true, a repetition never does harm, so the step is tried again for as long as channels.retry allows
  const again = dedupes === true ? 'unavailable' : 'transient'
  const details = describeFailure(post, result.detail)
  switch (result.kind) {
    case 'rate-limited':
    case 'transient':
      return {
        kind: state === 'sending' ? again : 'unavailable',
        ...details,
        retryAfterMs: result.retryAfterMs,
      }
    case 'ambiguous':
      return { kind: again, ...details }
    case 'permanent':
      return { kind: 'permanent', status: 'error', ...details }
  }
}

/** Names the recipient in the record, but not in the log, because a phone number or an address is personal. */
function describeFailure(post: Post, why: string): { detail: string; logged: string } {
  const { channel, to } = post
  const hidden = to === undefined || to === '' ? why : hideWord(why, to)
  return { detail: `${describeTarget(post)}: ${why}`, logged: `${channel}: ${hidden}` }
}

/** A short recipient such as `42` may be a part of other words, which stay as they are. */
function hideWord(text: string, word: string): string {
  const escaped = word.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return text.replaceAll(new RegExp(`(?<![\\p{L}\\p{N}])${escaped}(?![\\p{L}\\p{N}])`, 'gu'), 'the recipient')
}

/** The reply of a run is stored only once: a post that has the whole reply is stored without its text. */
function toStoredPosts(posts: readonly Post[], job: ClaimedJob): readonly StoredPost[] {
  const reply = findRunStep(job)?.result
  return posts.map(({ text, ...post }) => (text === reply ? post : { ...post, text }))
}

/** `current`: all messages of the job. `posts`: the messages of the step. */
function recordPosts(
  current: readonly Post[],
  { job, posts }: { job: ClaimedJob; posts: readonly Post[] },
): StepRecord {
  const ids = posts.map(({ id = '' }) => id)
  const [first] = posts
  const place = first === undefined ? '' : describeTarget(first)
  const count = posts.length === 1 ? '' : ` in ${posts.length} messages`
  return {
    kind: 'recorded',
    step: {
      state: 'done',
      detail: `sent to ${place} as ${ids.join(', ')}${count}${describeDoubt(posts)}`,
      result: ids.join(' '),
    },
    posts: toStoredPosts(current, job),
  }
}

function describeDoubt(posts: readonly Post[]): string {
  const parts = posts.filter(({ mayBeTwice }) => mayBeTwice).map(({ part }) => part + 1)
  if (parts.length === 0) return ''
  const which = parts.length === 1 ? `Message ${parts.join()}` : `Each of the messages ${parts.join(', ')}`
  return `. ${which} may have arrived twice: an earlier attempt was cut off before its result was recorded.`
}

/** Sorts messages by their step, no matter which step recorded its messages first. */
function sortByStep(posts: readonly Post[]): Post[] {
  const position = ({ step = 'deliver' }: Post) => Number(step.split('-')[1] ?? 1)
  return posts.toSorted((one, other) => position(one) - position(other))
}

function replace(posts: readonly Post[], changed: Post): Post[] {
  return posts.map((post) => (post.part === changed.part && post.step === changed.step ? changed : post))
}

function describeTarget({ channel, to }: Pick<Post, 'channel' | 'to'>): string {
  return to === undefined ? channel : `${channel} ${to}`
}
