// Shows one delivery with its trace, its jobs and their steps; or a run, or a refusal.
import { isEndedEarly, type Job, type Post, type ShownPostState, type Step, toShownPostState } from '../model/job.ts'
import { cut, toPrintable } from '../base/text.ts'
import { formatCommand } from '../base/shell.ts'
import { Problem } from '../core/model/problem.ts'
import { formatSpending, toNanos } from '../model/spending.ts'
import { describeVerdict, findVerdict } from '../model/verdict.ts'
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
import { toIsoTime, toJobFields, toShownFields } from '../gateway/deliveries/records.ts'
import { findId } from './gateway/ids.ts'
import { fetchTurns, readStore, readWaitsOf, type Turn, type Turns } from './gateway/stored.ts'
import type { Waits } from '../gateway/deliveries/waits.ts'

export async function show(context: Context, { id: given }: { id: string }): Promise<number> {
  const id = await findId(context, given)
  const found = await readStore(context, undefined, async (store) => {
    const record = await store.delivery(id)
    return record && { record, waits: await readWaitsOf(context, store, record.jobs) }
  })
  if (found === undefined) return showOther(context, id)
  const { record, waits } = found
  const turns = await fetchTurns(context, record.jobs)
  const fields = toShownFields(record, waits)
  const jobs = fields.jobs.map((job) => ({ ...job, ...toTurnFields(turns.get(job.jobId)) }))
  print(context, { ...fields, jobs }, renderDelivery(record, { waits, turns }))
  return 0
}

/** For an id without a delivery: shows a run, such as a heartbeat, or else a refusal of the running gateway. */
async function showOther(context: Context, id: string): Promise<number> {
  const found = await readStore(context, undefined, async (store) => {
    const job = await store.job(id)
    return job && { job, waits: (await readWaitsOf(context, store, [job])).get(id) }
  })
  const { findRefusal, renderRefusal } = await import('./gateway/refusals.ts')
  const refusal = found === undefined ? await findRefusal(context, id) : undefined
  if (found !== undefined) {
    const { job, waits } = found
    const turn = (await fetchTurns(context, [job])).get(id)
    print(context, { ...toJobFields(job, waits), ...toTurnFields(turn) }, renderJob(job, { waits, turn }))
  } else if (refusal !== undefined)
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

const toTurnFields = (turn: Turn | undefined) => (turn === undefined ? {} : { turn })

function renderDelivery(record: DeliveryRecord, { waits, turns }: { waits: Waits; turns: Turns }): string {
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
      [
        'next',
        record.state === 'parked'
          ? `${describeRetry(deliveryId)}, "${formatCommand`hookloom drop ${deliveryId}`}" ends it.`
          : '',
      ],
      ['answer', record.answer.contentType === undefined ? '' : describeAnswer(record.answer)],
      ['recovered', record.recovered ? 'fetched from its sender: no request brought it' : ''],
      ['edited', record.edited ? 'an operator replaced the body: no sender has proved it' : ''],
      ['repeated', describeRepetitions(record)],
      ['twin', record.bodyDiffered ? 'a repetition had a different body' : ''],
    ]),
    ...(problem === undefined
      ? []
      : [[`Problem ${problem.code}`, indent(problem.detail), indent(problem.frame ?? '')].join('\n')]),
    ...(trace.length === 0 ? [] : [renderTrace(trace)]),
    ...(log.length === 0 ? [] : [`Log\n${indent(log.join('\n'))}`]),
    ...jobs.map((job) => renderJob(job, { waits: waits.get(job.id), turn: turns.get(job.id) })),
  ]
  return blocks.map((block) => block.trimEnd()).join('\n\n')
}

/** Renders the answer that a mapping or a transform set. */
function describeAnswer({ status, contentType, body }: DeliveryRecord['answer']): string {
  return `${status} ${contentType} ${cutLine(body, 200)}`
}

/** The maximum number of characters of a shown reply. */
const maxReplyChars = 4_000

function renderJob(job: Job, { waits, turn }: { waits: string | undefined; turn: Turn | undefined }): string {
  const { planned, steps } = job
  const verdict = findVerdict(job)
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
  const failures = job.failures.map(({ at, error }) => [formatTime(at), cutLine(error, 200)])
  const posts = job.posts.map((post) => [
    `${post.part + 1} of ${job.posts.filter(({ step }) => step === post.step).length}`,
    toShownPostState(post, job),
    `${post.channel} ${post.to ?? ''}`.trimEnd(),
    [...(post.id === undefined ? [] : [post.id]), ...describePost(post, job)].join(', '),
  ])
  return [
    `${titles[planned.kind]} ${toPrintable(job.id)}`,
    renderFields([
      ['state', job.state],
      ['why', toPrintable(waits ?? '')],
      ['turn', turn === undefined ? '' : describeTurn(turn)],
      ['session', `${planned.sessionKey} of agent ${planned.agentId}`],
      ['attempts', describeAttempts(job)],
      ['verdict', verdict === undefined ? '' : describeVerdict(verdict)],
      [
        'failing',
        job.state === 'queued' && job.failingSince !== undefined ? `since ${formatTime(job.failingSince)}` : '',
      ],
      [
        'next try',
        job.state === 'queued' && (job.attempts > 0 || job.failingSince !== undefined) ? formatTime(job.runAt) : '',
      ],
      [nameLastError(job), job.state === 'done' ? '' : (job.lastError ?? '')],
      ['ended by', job.endedBy === undefined ? '' : toPrintable(job.endedBy)],
      ['next', job.state === 'dead' ? `${describeRetry(job.id)}.` : ''],
      ['status', describeTask(planned, 'statusJobId', 'it is set')],
      ['callback', describeTask(planned, 'callbackJobId', 'it was posted')],
      ['text', cutLine(describeSettings(planned), 200)],
    ]),
    ...(failures.length === 0 ? [] : [renderTable(['failed at', 'error'], failures)]),
    ...(recorded.length === 0 ? [] : [renderTable(['step', 'state', 'at', ''], recorded)]),
    ...(posts.length === 0 ? [] : [renderTable(['message', 'state', 'to', ''], posts)]),
    ...(reply === undefined ? [] : [`Reply\n${indent(cut(reply, maxReplyChars))}`]),
  ].join('\n')
}

function describeAttempts({ attempts, failures }: Job): string {
  const more = failures.length - attempts
  return more > 0
    ? `${attempts}, and ${more} while the other side was unavailable, which ${more === 1 ? 'does' : 'do'} not count`
    : `${attempts}`
}

/** A delay, such as that of a spent budget, is no failure. */
function nameLastError({ state, failures, lastError }: Job): string {
  if (isEndedEarly(state)) return 'reason'
  return state === 'queued' && failures.at(-1)?.error !== lastError ? 'held back' : 'last error'
}

function describeTurn({ since, until }: Turn): string {
  return `since ${formatTime(Date.parse(since))}, until ${formatTime(Date.parse(until))} at the latest (timeoutSeconds)`
}

function describeEnd(state: Job['state']): string {
  if (state === 'expired') return 'expired'
  return state === 'dead' ? 'failed permanently' : `was ${state}`
}

/** Explains the state of a message. */
function describePost(post: Post, job: Job): string[] {
  const notes: Partial<Record<ShownPostState, string>> = {
    unsent: `not sent: the run ${describeEnd(job.state)}`,
    unknown: 'it may have arrived, or not',
    sending: job.state === 'running' ? 'its result is not recorded yet' : 'it may have arrived, and is sent again',
  }
  const note = notes[toShownPostState(post, job)]
  const isDoubtful = post.mayBeTwice === true && post.state === 'sent'
  return [
    ...(note === undefined || post.failed !== undefined ? [] : [note]),
    ...(post.failed === undefined ? [] : [toPrintable(post.failed)]),
    ...(isDoubtful ? ['it may have arrived twice: an earlier attempt was cut off before its result was recorded'] : []),
  ]
}

function describeRetry(id: string): string {
  return `"${formatCommand`hookloom retry ${id}`}" runs it again`
}

const titles = {
  deliver: 'Message',
  wake: 'Wake',
  agent: 'Run',
  heartbeat: 'Heartbeat',
  alert: 'Alert',
  status: 'Status',
  callback: 'Callback',
} as const

function describeSettings(planned: Job['planned']): string {
  if (planned.kind === 'heartbeat')
    return planned.reason === 'wake' ? 'a wake asked for it' : 'the heartbeat interval had passed'
  if (planned.kind === 'alert') return planned.text
  if (planned.kind === 'callback')
    return `the end of the run ${planned.runId} goes to the endpoint "${planned.endpoint}"`
  if (planned.kind === 'status') return `the status "${planned.name}" of ${planned.commit} for the run ${planned.runId}`
  return planned.kind === 'wake' ? planned.action.text : planned.action.message
}

/** Says where to look for the commit status or the callback of a run. */
function describeTask(planned: Job['planned'], id: 'statusJobId' | 'callbackJobId', what: string): string {
  if (planned.kind !== 'agent' || planned[id] === undefined) return ''
  return `"${formatCommand`hookloom show ${planned[id]}`}" shows whether ${what}`
}

function describeCost({ model, usage }: Pick<Step, 'model' | 'usage'>): string[] {
  return [
    ...(model === undefined ? [] : [model]),
    ...(usage === undefined ? [] : [`${usage.inputTokens} tokens in, ${usage.outputTokens} out`]),
    ...(usage?.costUsd === undefined ? [] : [formatSpending('nanos', toNanos(usage.costUsd))]),
  ]
}
