// The parts of an opened delivery: the beginnings of its replies, the prompts and replies, the payload, and the headers.
import type { JSX } from 'preact'
import type { JobFields, RequestFields, RunFields } from '../model/api/answers.ts'
import { call } from './api.ts'
import { formatCount, markUnseen } from './format.ts'
import { Markdown } from './markdown.tsx'
import { usePolled } from './polled.ts'
import { Line, LongText } from './text.tsx'
import { PayloadView } from './tree.tsx'

/** So many characters of a reply are shown above the trace, and the rest of their block. */
const maxReplyChars = 400
/** How often the reply of a running turn is read. */
const liveMs = 500

/** The replies so far of the turns that run on this gateway. */
export function LiveReplies({ jobs }: { jobs: readonly JobFields[] }): JSX.Element {
  const running = jobs.filter(({ state, runId }) => state === 'running' && runId !== null)
  return (
    <>
      {running.map(({ jobId, runId }) => (
        <LiveReply key={jobId} id={runId ?? ''} />
      ))}
    </>
  )
}

function LiveReply({ id }: { id: string }): JSX.Element | null {
  const read = (signal: AbortSignal) => call('GET /api/runs/{id}/reply', { params: { id }, signal })
  const { text = null } = usePolled(read, { everyMs: liveMs, version: id }) ?? {}
  if (text === null) return null
  return (
    <section class="part" aria-label="Reply so far" aria-busy="true">
      <h3>
        It says <span class="dim">… {formatCount(text.length)} characters</span>
      </h3>
      <Markdown text={text} label="It says" />
    </section>
  )
}

/** The beginning of the reply of each run. */
export function Replies({ runs, onOpen }: { runs: readonly RunFields[]; onOpen: () => void }): JSX.Element {
  return (
    <>
      {runs.map(
        ({ jobId, reply }) =>
          reply !== null &&
          reply !== '' && (
            <section class="part" key={jobId} aria-label="Beginning of the reply">
              <h3>
                It said{' '}
                <button type="button" class="link" onClick={onOpen}>
                  prompt and whole reply
                </button>
              </h3>
              <Markdown text={reply} label="It said" most={maxReplyChars} />
            </section>
          ),
      )}
    </>
  )
}

export function Part({
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

/** Matches an untrusted text between its markers in a prompt. */
const outside =
  /<<<EXTERNAL_UNTRUSTED_CONTENT id="([0-9a-f]{16})">>>\n([^]*?)\n<<<END_EXTERNAL_UNTRUSTED_CONTENT id="\1">>>/g

export function Texts({ runs }: { runs: readonly RunFields[] }): JSX.Element {
  const shown = runs.filter(({ prompt, reply }) => prompt !== null || reply !== null)
  if (shown.length === 0) return <p class="note">No turn has ended.</p>
  return (
    <>
      {shown.map(({ jobId, prompt, reply }) => (
        <div key={jobId}>
          {prompt !== null && (
            <Part title="Prompt, as it was built">
              <Prompt text={prompt} />
            </Part>
          )}
          {reply !== null && (
            <Part title="Reply">
              <Markdown text={reply} label="Reply" />
            </Part>
          )}
        </div>
      ))}
    </>
  )
}

/** The untrusted texts of a prompt. */
export const listOutside = (prompt: string) => [...prompt.matchAll(outside)].map(({ 2: words = '' }) => words)

/** A prompt: its untrusted texts, and the whole prompt, folded. Without untrusted texts, it is shown whole. `label`: the label of the untrusted texts. */
export function Prompt({ text, label }: { text: string; label?: string }): JSX.Element {
  const found = listOutside(text)
  if (found.length === 0) return <LongText text={text} label={label ?? 'Prompt'} />
  return (
    <>
      <p class="dim">
        <span class="chip">from outside</span> The agent reads this text between markers that say that it is not
        trusted.
      </p>
      {found.map((words, at) => (
        <LongText key={at} text={words} label={label ?? 'Text from outside'} />
      ))}
      <details>
        <summary class="dim">the whole prompt, with its markers</summary>
        <LongText text={text} label="The whole prompt" />
      </details>
    </>
  )
}

/** The payload and the headers. */
export function RequestParts({ request, onCopy }: PayloadProps): JSX.Element {
  return (
    <>
      <Payload request={request} onCopy={onCopy} />
      {request !== undefined && <Headers request={request} />}
    </>
  )
}

type PayloadProps = {
  readonly request: RequestFields | undefined
  readonly onCopy: (what: string, text: string) => void
}

function Payload({ request, onCopy }: PayloadProps): JSX.Element {
  if (request === undefined) {
    return (
      <Part title="Payload">
        <p class="note">
          The payload was not kept. Set <code>"retain": true</code> in the mapping to keep the next ones.
        </p>
      </Part>
    )
  }
  const { body, encoding } = request
  return (
    <Part title={`Payload, ${formatCount(body.length)} characters`}>
      {encoding === 'utf8' ? <PayloadView text={body} onCopy={onCopy} /> : <LongText text={body} label="Payload" />}
    </Part>
  )
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
              <Line text={name} max={80} />
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
