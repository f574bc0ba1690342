// The pipe as a picture: its stages in order, each with its decision.
import type { ComponentChildren, JSX } from 'preact'
import type { JobFields, ShownDelivery } from '../model/api-types.ts'
import { go } from './place.ts'
import { formatDuration, formatTimes } from './format.ts'
import { Line, Time } from './text.tsx'

export function Pipe({ delivery }: { delivery: ShownDelivery }): JSX.Element {
  const { trace, log, jobs, state, receivedAt, settledAt } = delivery
  const matched = trace.some((tried) => tried.matched)
  const isSettled = settledAt !== null
  return (
    <ol class="pipe" aria-label="What happened">
      <Stage name="received" mark="done">
        <Time at={receivedAt} />
        <Repetitions delivery={delivery} />
      </Stage>
      <Stage name="admitted" mark="done">
        {describeAdmission(delivery)}
      </Stage>
      <Stage name="mapping" mark={trace.length === 0 || matched ? 'done' : 'idle'}>
        {trace.length === 0 && <span>{delivery.mappingId ?? 'built in'}</span>}
        <ul class="tried">
          {trace.map((tried, at) => (
            <li key={at} class={tried.matched ? 'taken' : 'dim'}>
              <span aria-label={tried.matched ? 'taken' : 'not taken'}>{tried.matched ? '✓' : '·'}</span>{' '}
              <b>
                <Line text={tried.mappingId} most={80} />
              </b>{' '}
              <Line text={tried.why} most={400} />
            </li>
          ))}
        </ul>
      </Stage>
      <Stage name={delivery.madeBy?.kind ?? 'made by'} mark={state === 'parked' ? 'bad' : 'done'}>
        <MadeBy delivery={delivery} />
        {log.length > 0 && (
          <ul class="log" aria-label="Log of the transform">
            {log.map((line, at) => (
              <li key={at}>
                <Line text={line} most={1_000} />
              </li>
            ))}
          </ul>
        )}
      </Stage>
      <Stage name={state} mark={state === 'parked' ? 'bad' : isSettled ? 'done' : 'idle'}>
        {isSettled ? `after ${formatDuration(Date.parse(settledAt) - Date.parse(receivedAt))}` : 'it waits'}
      </Stage>
      {jobs.map((job) => (
        // the reason of a single run is above the pipe
        <JobStage key={job.jobId} job={job} since={receivedAt} showsError={jobs.length > 1} />
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
        <Line text={madeBy.template ?? '{{payload}}'} most={400} />
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

/** https://code.visualstudio.com/docs/configure/command-line#_opening-vs-code-with-urls */
export function toEditorUrl(file: string, line: number): string {
  return `vscode://file/${file.replace(/^\//, '').split('/').map(encodeURIComponent).join('/')}:${line}`
}

type JobStageProps = { readonly job: JobFields; readonly since: string; readonly showsError: boolean }

function JobStage({ job, since, showsError }: JobStageProps): JSX.Element {
  const mark = job.state === 'dead' ? 'bad' : job.state === 'done' ? 'done' : 'idle'
  return (
    <Stage name={job.kind === 'wake' ? 'event' : job.kind} mark={mark}>
      <p>
        <button
          type="button"
          class="link"
          onClick={() => go({ view: 'sessions', session: `${job.agentId}/${job.sessionKey}` })}
        >
          <Line text={`${job.agentId} ${job.sessionKey}`} most={160} />
        </button>{' '}
        <b class={job.state}>{job.state}</b>
        {job.attempts > 1 && <span class="dim"> attempt {job.attempts}</span>}
      </p>
      {showsError && job.lastError !== null && job.state !== 'done' && (
        <p class="warn">
          <Line text={job.lastError} most={1_000} />
        </p>
      )}
      <ul class="steps">
        {job.steps.map((step) => (
          <li key={step.name}>
            <b>{step.name}</b> {step.state}{' '}
            <span class="dim">+{formatDuration(Date.parse(step.at) - Date.parse(since))}</span>{' '}
            {step.model !== undefined && <span class="dim">{step.model} </span>}
            {step.usage !== undefined && (
              <span class="dim">
                {step.usage.inputTokens} in, {step.usage.outputTokens} out{' '}
              </span>
            )}
            <Line text={step.detail ?? ''} most={300} />
          </li>
        ))}
        {job.posts.map((post) => (
          <li key={post.nonce}>
            <b>message {post.part + 1}</b> {post.state} {post.channel} <Line text={post.to ?? ''} most={80} />{' '}
            {post.messageId !== null && (
              <code>
                <Line text={post.messageId} most={80} />
              </code>
            )}
            {post.mayBeTwice && <span class="warn"> may have arrived twice</span>}
          </li>
        ))}
      </ul>
    </Stage>
  )
}
