// The pipe as a picture: its stages in order, each with its decision.
import type { ComponentChildren, JSX } from 'preact'
import type { JobFields, ShownDelivery } from '../model/api/answers.ts'
import { formatDuration, formatTimes } from './format.ts'
import { Link } from './link.tsx'
import { Line, Sentence, Time, useNow } from './text.tsx'
import { TransformLog, TriedMappings } from './tried.tsx'
import { hasFailed } from './rows.ts'
import { findSpan, listMarks, listTimes, type Span, type StepTime } from './waterfall.ts'

/** The maximum number of actions that are shown unfolded: `forEach` can make thousands. */
const maxStages = 5

export function Pipe({ delivery }: { delivery: ShownDelivery }): JSX.Element {
  const { trace, log, jobs, tasks, state, receivedAt, settledAt } = delivery
  const matched = trace.some((tried) => tried.matched)
  const isSettled = settledAt !== null
  const isActive = [...jobs, ...tasks].some(({ state: job }) => job === 'running' || job === 'queued')
  const now = useNow(isActive ? Number.POSITIVE_INFINITY : Date.parse(receivedAt))
  const span = findSpan({ receivedAt, jobs: [...jobs, ...tasks] }, now)
  const stages = jobs.map((job) => (
    // the reason of a single run is shown above the pipe
    <JobStage key={job.jobId} job={job} span={span} showsError={jobs.length > 1} />
  ))
  return (
    <ol class="pipe" aria-label="What happened">
      <Stage name="received" mark="done">
        <Time at={receivedAt} />
        {delivery.edited && <span id="edited"> an operator replaced the body: no sender has proved it</span>}
        {delivery.recovered && <span id="recovered"> fetched from its sender: no request brought it</span>}
        <Repetitions delivery={delivery} />
      </Stage>
      <Stage name="admitted" mark="done">
        {describeAdmission(delivery)}
      </Stage>
      <Stage name="mapping" mark={trace.length === 0 || matched ? 'done' : 'idle'}>
        {trace.length === 0 && <span>{delivery.mappingId ?? 'built in'}</span>}
        <TriedMappings trace={trace} />
      </Stage>
      <Stage name={delivery.madeBy?.kind ?? 'made by'} mark={state === 'parked' ? 'bad' : 'done'}>
        <MadeBy delivery={delivery} />
        <TransformLog lines={log} />
      </Stage>
      <Stage name={state} mark={state === 'parked' ? 'bad' : isSettled ? 'done' : 'idle'}>
        {isSettled ? `after ${formatDuration(Date.parse(settledAt) - Date.parse(receivedAt))}` : 'it waits'}
      </Stage>
      {stages.slice(0, maxStages)}
      {stages.length > maxStages && (
        <li class="stage idle">
          <span class="stage-name">more</span>
          <details>
            <summary>{stages.length - maxStages} more actions</summary>
            <ol>{stages.slice(maxStages)}</ol>
          </details>
        </li>
      )}
      {tasks.map((task) => (
        <JobStage key={task.jobId} job={task} span={span} showsError />
      ))}
    </ol>
  )
}

function Repetitions({ delivery }: { delivery: ShownDelivery }): JSX.Element | null {
  const { repeats, repeatedAt, bodyDiffered } = delivery
  if (repeatedAt === null) return null
  return (
    <>
      {' '}
      <span id="repeated">
        repeated {formatTimes(repeats)}, last <Time at={repeatedAt} />
        {bodyDiffered && <span class="warn"> with a different body</span>}
      </span>
    </>
  )
}

type Mark = 'done' | 'bad' | 'idle'

function Stage({ name, mark, children }: { name: string; mark: Mark; children: ComponentChildren }): JSX.Element {
  return (
    <li class={`stage ${mark}`}>
      <span class="stage-name">{name}</span>
      <div>{children}</div>
    </li>
  )
}

function describeAdmission({ admitted }: ShownDelivery): string {
  if (admitted === null) return 'unknown: the request was not kept, and its mapping no longer exists'
  const { token, scheme } = admitted
  const proof = scheme === null ? [] : [`the proof of ${scheme}`]
  return [...(token ? ['the hook token'] : []), ...proof].join(' and ') || 'nothing'
}

function MadeBy({ delivery: { madeBy } }: { delivery: ShownDelivery }): JSX.Element {
  if (madeBy === null) return <span class="dim">no mapping</span>
  if (madeBy.kind === 'built-in') return <span>built into the hook</span>
  if (madeBy.kind === 'template')
    return (
      <code>
        <Line text={madeBy.template ?? '{{payload}}'} max={400} />
      </code>
    )
  return madeBy.file === null ? (
    <code>{madeBy.module}</code>
  ) : (
    <a href={toEditorUrl(madeBy.file, madeBy.line)} id="open-editor">
      {madeBy.module}:{madeBy.line}
    </a>
  )
}

/** Source: https://code.visualstudio.com/docs/configure/command-line#_opening-vs-code-with-urls */
export function toEditorUrl(file: string, line: number): string {
  return `vscode://file/${file.replace(/^\//, '').split('/').map(encodeURIComponent).join('/')}:${line}`
}

/** The summary of an action. A message to a channel, and a task that reports the end of a run, have no session. */
function Session({ job: { kind, agentId, sessionKey } }: { job: JobFields }): JSX.Element | null {
  if (kind === 'status' || kind === 'callback') return null
  if (kind === 'deliver') return <Line text={sessionKey.replace(/^deliver:/, '')} max={160} />
  return (
    <Link class="link" to={{ view: 'sessions', session: `${agentId}/${sessionKey}` }}>
      <Line text={`${agentId} ${sessionKey}`} max={160} />
    </Link>
  )
}

type JobStageProps = { readonly job: JobFields; readonly span: Span; readonly showsError: boolean }

function JobStage({ job, span, showsError }: JobStageProps): JSX.Element {
  const { times, rest } = listTimes(job, span)
  const mark = job.state === 'dead' ? 'bad' : job.state === 'done' ? 'done' : 'idle'
  return (
    <Stage name={job.kind === 'wake' ? 'event' : job.kind} mark={mark}>
      <p>
        <Session job={job} /> <b class={job.state}>{job.state}</b>
        {job.verdict !== undefined && (
          <span>
            {' '}
            verdict <b>{job.verdict ?? 'none'}</b>
            {job.verdictForm !== null && <span class="dim"> by {job.verdictForm?.replace('-', ' ')}</span>}
            {job.verdictRepaired === true && <span class="dim">, after a second question</span>}
          </span>
        )}
        {job.attempts > 1 && <span class="dim"> {job.attempts} attempts</span>}
      </p>
      {job.waits !== undefined && (
        <p class="warn">
          <Sentence text={job.waits} max={400} />
        </p>
      )}
      {job.endedBy !== null && (
        <p class="dim">
          replaced by{' '}
          <Link class="link" to={{ view: 'list', id: job.endedBy ?? '' }}>
            <Line text={job.endedBy} max={80} />
          </Link>
        </p>
      )}
      {showsError && job.lastError !== null && job.state !== 'done' && (
        <p class={hasFailed(job) ? 'warn' : 'dim'}>
          <Sentence text={job.lastError} max={1_000} />
        </p>
      )}
      {(times.length > 0 || rest !== undefined) && <Scale span={span} />}
      <ul class="steps">
        {job.steps.map((step, at) => (
          <li key={step.name}>
            {times[at] !== undefined && <Bar span={span} time={times[at]} />}
            <b>{step.name}</b> {step.state}{' '}
            <span class="dim">
              {step.startedAt !== undefined && `${formatDuration(Date.parse(step.at) - Date.parse(step.startedAt))}, `}
              at +{formatDuration(Date.parse(step.at) - span.from)}
            </span>{' '}
            {step.model !== undefined && <span class="dim">{step.model} </span>}
            {step.usage !== undefined && (
              <span class="dim">
                {step.usage.inputTokens} in, {step.usage.outputTokens} out
                {step.usage.costUsd !== undefined && `, $${step.usage.costUsd.toFixed(4)}`}{' '}
              </span>
            )}
            <Line text={step.detail ?? ''} max={300} />
          </li>
        ))}
        {rest !== undefined && (
          <li>
            <Bar span={span} time={rest} isRunning={job.state === 'running'} />
            {job.state === 'running' && (
              <>
                <b>runs</b> <span class="dim">for {formatDuration(rest.end - rest.start)}</span>
              </>
            )}
          </li>
        )}
        {job.posts.map((post) => (
          <li key={post.nonce}>
            <b>message {post.part + 1}</b> {post.state} {post.channel} <Line text={post.to ?? ''} max={80} />{' '}
            {post.messageId !== null && (
              <code>
                <Line text={post.messageId} max={80} />
              </code>
            )}
            {post.mayBeTwice && <span class="warn"> may have arrived twice</span>}
            {post.failed !== null && (
              <span class="warn">
                {' '}
                <Sentence text={post.failed} max={300} />
              </span>
            )}
          </li>
        ))}
      </ul>
      {job.failures.length > 0 && (
        <details class="failures">
          <summary>{job.failures.length} failed</summary>
          <ol>
            {job.failures.map(({ at, error }, place) => (
              <li key={place}>
                <span class="dim">at +{formatDuration(Date.parse(at) - span.from)}</span>{' '}
                <Sentence text={error} max={200} />
              </li>
            ))}
          </ol>
        </details>
      )}
    </Stage>
  )
}

/** The times of the bars below it, from the arrival of the delivery. */
function Scale({ span }: { span: Span }): JSX.Element {
  return (
    <div class="scale" aria-hidden="true">
      {listMarks(span).map((ms) => (
        <span key={ms} style={{ left: `${(ms / (span.until - span.from)) * 100}%` }}>
          {ms === 0 ? '0' : formatDuration(ms)}
        </span>
      ))}
    </div>
  )
}

type BarProps = { readonly span: Span; readonly time: StepTime; readonly isRunning?: boolean }

function Bar({ span, time: { waitedFrom, start, end, failed }, isRunning = false }: BarProps): JSX.Element {
  const length = span.until - span.from
  const percent = (at: number) => Math.max(0, Math.min(100, ((at - span.from) / length) * 100))
  const toStyle = (from: number, until: number) => ({
    left: `${percent(from)}%`,
    width: `${percent(until) - percent(from)}%`,
  })
  const waited = start - waitedFrom
  const words = [
    ...(waited > 0 ? [`waited ${formatDuration(waited)}`] : []),
    ...(failed.length > 0 ? [`failed at ${failed.map((at) => `+${formatDuration(at - span.from)}`).join(', ')}`] : []),
    ...(end > start || failed.length === 0 ? [`${isRunning ? 'runs for' : 'ran'} ${formatDuration(end - start)}`] : []),
  ].join(', ')
  return (
    <span class="bar" role="img" aria-label={words} title={words}>
      <i class="waited" style={toStyle(waitedFrom, start)} />
      {(end > start || failed.length === 0) && (
        <i class={isRunning ? 'ran running' : 'ran'} style={toStyle(start, end)} />
      )}
      {failed.map((at) => (
        <i key={at} class="tick" style={{ left: `min(${percent(at)}%, 100% - 2px)` }} />
      ))}
    </span>
  )
}
