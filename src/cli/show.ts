// One delivery with its trace, its jobs and their steps.
import { type Job, type Post, type ShownPostState, type Step, toShownPostState } from '../model/job.ts'
import { cut, toPrintable } from '../base/text.ts'
import { Problem } from '../model/problem.ts'
import type { DeliveryRecord } from '../store/records.ts'
import type { Context } from './terminal/context.ts'
import {
  cutLine,
  renderFields,
  indent,
  describeRepetitions,
  renderTable,
  renderTrace,
  formatTime,
} from './terminal/print.ts'
import { toIsoTime, toJobFields, toShownFields } from '../deliveries/records.ts'
import { findId } from './gateway/ids.ts'
import { readStore } from './gateway/stored.ts'

export async function show(context: Context, { id: given }: { id: string }): Promise<number> {
  const id = await findId(context, given)
  const record = await readStore(context, undefined, (store) => store.delivery(id))
  if (record === undefined) return showOther(context, id)
  print(context, toShownFields(record), renderDelivery(record))
  return 0
}

/** A run without a delivery, such as a heartbeat; otherwise a refusal of the running gateway. */
async function showOther(context: Context, id: string): Promise<number> {
  const job = await readStore(context, undefined, (store) => store.job(id))
  const { findRefusal, renderRefusal } = await import('./gateway/refusals.ts')
  const refusal = job === undefined ? await findRefusal(context, id) : undefined
  if (job !== undefined) print(context, toJobFields(job), renderJob(job))
  else if (refusal !== undefined)
    print(context, { ...refusal, receivedAt: toIsoTime(refusal.receivedAt) }, renderRefusal(refusal))
  else {
    throw new Problem(
      'not-found',
      `No delivery, run or refusal has the id "${cutLine(id, 60)}". "hookloom list" and "hookloom list --refused" show the ids.`,
    )
  }
  return 0
}

function print(context: Context, fields: object, text: string): void {
  if (context.json) context.printJson(fields)
  else context.print(text)
}

function renderDelivery(record: DeliveryRecord): string {
  const { deliveryId, problem, trace, log, jobs } = record
  const blocks = [
    `Delivery ${deliveryId}`,
    renderFields([
      ['state', record.state],
      ['received', formatTime(record.receivedAt)],
      ['hook', record.hook],
      ['source', record.source ?? ''],
      ['event', record.event ?? ''],
      ['mapping', record.mappingId ?? ''],
      ['generation', record.generation],
      ['gateway', record.node ?? ''],
      ['transform', record.transformHash ?? ''],
      ['next', record.state === 'parked' ? `${describeRetry(deliveryId)}, "hookloom drop ${deliveryId}" ends it.` : ''],
      ['answer', record.answer.contentType === undefined ? '' : describeAnswer(record.answer)],
      ['repeated', describeRepetitions(record)],
      ['twin', record.bodyDiffered ? 'a repetition had a different body' : ''],
    ]),
    ...(problem === undefined
      ? []
      : [[`Problem ${problem.code}`, indent(problem.detail), indent(problem.frame ?? '')].join('\n')]),
    ...(trace.length === 0 ? [] : [renderTrace(trace)]),
    ...(log.length === 0 ? [] : [`Log of the transform\n${indent(log.join('\n'))}`]),
    ...jobs.map(renderJob),
  ]
  return blocks.map((block) => block.trimEnd()).join('\n\n')
}

/** An answer that a mapping or a transform set. */
function describeAnswer({ status, contentType, body }: DeliveryRecord['answer']): string {
  return `${status} ${contentType} ${cutLine(body, 200)}`
}

/** Characters of a reply that are shown. */
const maxReplyChars = 4_000

function renderJob(job: Job): string {
  const { planned, steps } = job
  const reply = steps.find(({ name, state }) => name === 'run' && state === 'done')?.result
  const recorded = steps.map(({ name, state, at, detail = '', ...step }) => [
    name,
    state,
    formatTime(at),
    [
      detail === '' && name === 'wake' ? 'caused a heartbeat turn of the main session' : detail,
      ...describeCost(step),
    ].join(', '),
  ])
  const posts = job.posts.map((post) => [
    `${post.part + 1} of ${job.posts.length}`,
    toShownPostState(post, job),
    `${post.channel} ${post.to ?? ''}`.trimEnd(),
    [...(post.id === undefined ? [] : [post.id]), ...describePost(post, job)].join(', '),
  ])
  return [
    `${titles[planned.kind]} ${toPrintable(job.id)}`,
    renderFields([
      ['state', job.state],
      ['session', `${planned.sessionKey} of agent ${planned.agentId}`],
      ['attempts', String(job.attempts)],
      [
        'failing',
        job.state === 'queued' && job.failingSince !== undefined ? `since ${formatTime(job.failingSince)}` : '',
      ],
      [
        'next try',
        job.state === 'queued' && (job.attempts > 0 || job.failingSince !== undefined) ? formatTime(job.runAt) : '',
      ],
      ['last error', job.state === 'done' ? '' : (job.lastError ?? '')],
      ['next', job.state === 'dead' ? `${describeRetry(job.id)}.` : ''],
      ['text', cutLine(describeSettings(planned), 200)],
    ]),
    ...(recorded.length === 0 ? [] : [renderTable(['step', 'state', 'at', ''], recorded)]),
    ...(posts.length === 0 ? [] : [renderTable(['message', 'state', 'to', ''], posts)]),
    ...(reply === undefined ? [] : [`Reply\n${indent(cut(reply, maxReplyChars))}`]),
  ].join('\n')
}

/** Explains the state of a message. */
function describePost(post: Post, job: Job): string[] {
  const notes: Partial<Record<ShownPostState, string>> = {
    unsent: `not sent: the run ${job.state === 'dropped' ? 'was dropped' : 'failed permanently'}`,
    unknown: 'it may have arrived, or not',
    sending: job.state === 'running' ? 'its result is not recorded yet' : 'it may have arrived, and is sent again',
  }
  const note = notes[toShownPostState(post, job)]
  const isDoubtful = post.mayBeTwice === true && post.state === 'sent'
  return [
    ...(note === undefined ? [] : [note]),
    ...(isDoubtful ? ['it may have arrived twice: an earlier attempt was cut off before its result was recorded'] : []),
  ]
}

function describeRetry(id: string): string {
  return `"hookloom retry ${id}" runs it again`
}

const titles = { wake: 'Wake', agent: 'Run', heartbeat: 'Heartbeat', alert: 'Alert' } as const

function describeSettings(planned: Job['planned']): string {
  if (planned.kind === 'heartbeat')
    return planned.reason === 'wake' ? 'a wake asked for it' : 'the heartbeat interval had passed'
  if (planned.kind === 'alert') return planned.text
  return planned.kind === 'wake' ? planned.action.text : planned.action.message
}

function describeCost({ model, usage }: Pick<Step, 'model' | 'usage'>): string[] {
  return [
    ...(model === undefined ? [] : [model]),
    ...(usage === undefined ? [] : [`${usage.inputTokens} tokens in, ${usage.outputTokens} out`]),
    ...(usage?.costUsd === undefined ? [] : [`$${usage.costUsd}`]),
  ]
}
