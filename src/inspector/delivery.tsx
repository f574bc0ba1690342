// One delivery: how it went through the pipe, what came, what was asked, and what the sender was told.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { RequestFields, RunFields, ShownDelivery } from '../model/api-types.ts'
import { Actions } from './actions.tsx'
import { get } from './api.ts'
import { Pipe } from './pipe.tsx'
import { go } from './place.ts'
import { LongText, Line } from './text.tsx'
import { markUnseen } from './visible.ts'
import { Tree } from './tree.tsx'

type Shown = {
  readonly delivery: ShownDelivery
  readonly request: RequestFields | undefined
  readonly runs: readonly RunFields[]
}

export function DeliveryView({
  id,
  version,
  hooksUrl,
}: {
  id: string
  version: number
  hooksUrl: string
}): JSX.Element {
  const [shown, setShown] = useState<Shown>()
  const [problem, setProblem] = useState('')
  const [reading, setReading] = useState(0)

  useEffect(() => {
    const ended = new AbortController()
    void load(ended.signal)
    return () => ended.abort()
  }, [id, version, reading])

  async function load(signal: AbortSignal): Promise<void> {
    try {
      setShown(await read(id, signal))
      setProblem('')
    } catch (error) {
      if (!signal.aborted) setProblem(error instanceof Error ? error.message : 'It could not be read.')
    }
  }

  if (problem !== '') return <p class="empty bad">{problem}</p>
  // the delivery before stays until the next one is there: nothing jumps
  if (shown === undefined) return <p class="empty">Reading …</p>
  const { delivery, request, runs } = shown
  return (
    <>
      <header class="title">
        <h2>
          <button type="button" class="link" onClick={() => go({ hook: delivery.hook, id })} title="Only this hook">
            <Line text={delivery.hook} most={80} />
          </button>{' '}
          {delivery.source !== null && (
            <button
              type="button"
              class="link dim"
              onClick={() => go({ source: delivery.source ?? '' })}
              title="Only this source"
            >
              <Line text={delivery.sourceName ?? delivery.source} most={60} />
            </button>
          )}{' '}
          <span class="dim">
            <Line text={delivery.event ?? ''} most={80} />
          </span>
        </h2>
        <code class="id">{delivery.deliveryId}</code>
      </header>
      <Actions delivery={delivery} request={request} hooksUrl={hooksUrl} onDone={() => setReading(reading + 1)} />
      {delivery.problem !== null && (
        <section class="problem" aria-label="Problem">
          <p>
            <b>{delivery.problem.code}</b> <Line text={delivery.problem.detail} most={2_000} />
          </p>
          {delivery.problem.frame !== undefined && <LongText text={delivery.problem.frame} label="Code frame" />}
        </section>
      )}
      <Pipe delivery={delivery} />
      {runs.map((run) => (
        <Run key={run.jobId} run={run} />
      ))}
      <Payload request={request} />
      {request !== undefined && <Headers request={request} />}
      <Part title={`Answer to the sender: ${delivery.answer.status}`}>
        <LongText text={delivery.answer.body === '' ? '(no body)' : delivery.answer.body} label="Answer" />
      </Part>
    </>
  )
}

/** Runs whose texts are read: a delivery with `forEach` can have two hundred. */
const mostRuns = 10

async function read(id: string, signal: AbortSignal): Promise<Shown> {
  const delivery = await get<ShownDelivery>(`/api/deliveries/${encodeURIComponent(id)}`, signal)
  const request = delivery.isRequestKept
    ? await get<RequestFields>(`/api/deliveries/${encodeURIComponent(id)}/request`, signal).catch(() => undefined)
    : undefined
  const ids = delivery.jobs.flatMap(({ runId }) => runId ?? []).slice(0, mostRuns)
  const runs = await Promise.all(ids.map((run) => get<RunFields>(`/api/runs/${encodeURIComponent(run)}`, signal)))
  return { delivery, request, runs }
}

function Part({
  title,
  children,
  isOpen = true,
}: {
  title: string
  children: JSX.Element | null
  isOpen?: boolean
}): JSX.Element {
  return (
    <details class="part" open={isOpen}>
      <summary>
        <h3>{title}</h3>
      </summary>
      {children}
    </details>
  )
}

function Run({ run }: { run: RunFields }): JSX.Element | null {
  if (run.prompt === null && run.reply === null) return null
  return (
    <>
      {run.prompt !== null && (
        <Part title="Prompt, as it was built" isOpen={false}>
          <LongText text={run.prompt} label="Prompt" />
        </Part>
      )}
      {run.reply !== null && (
        <Part title="Reply">
          <LongText text={run.reply} label="Reply" />
        </Part>
      )}
    </>
  )
}

function Payload({ request }: { request: RequestFields | undefined }): JSX.Element {
  if (request === undefined) {
    return (
      <Part title="Payload">
        <p class="note">
          The payload was not kept. Set <code>"retain": true</code> in the mapping to keep the next ones.
        </p>
      </Part>
    )
  }
  const value = request.encoding === 'utf8' ? toJson(request.body) : undefined
  return (
    <Part title={`Payload, ${request.body.length.toLocaleString('en')} characters`}>
      {value === undefined ? <LongText text={request.body} label="Payload" /> : <Tree value={value} />}
    </Part>
  )
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function Headers({ request }: { request: RequestFields }): JSX.Element {
  const names = Object.keys(request.headers).toSorted()
  return (
    <Part title={`Request, ${names.length} headers`} isOpen={false}>
      <dl class="fields">
        <dt>{request.method}</dt>
        <dd>
          <bdi>{markUnseen(request.url.slice(0, 4_000))}</bdi>
        </dd>
        {names.map((name) => (
          <>
            <dt key={name}>
              <Line text={name} most={80} />
            </dt>
            <dd>
              <bdi>{markUnseen((request.headers[name] ?? '').slice(0, 4_000))}</bdi>
            </dd>
          </>
        ))}
      </dl>
    </Part>
  )
}
