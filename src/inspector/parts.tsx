// The parts of an opened delivery: the beginnings of its replies, the prompts and replies, the payload, and the headers.
import type { JSX } from 'preact'
import type { RequestFields, RunFields } from '../model/api/answers.ts'
import { formatCount, markUnseen } from './format.ts'
import { Markdown } from './markdown.tsx'
import { Line, LongText } from './text.tsx'
import { PayloadView } from './tree.tsx'

/** The maximum number of characters of a reply that are shown below the trace. */
const maxReplyChars = 400

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
              <p class="reply">
                <bdi>{markUnseen(reply.length > maxReplyChars ? `${reply.slice(0, maxReplyChars)}…` : reply)}</bdi>
              </p>
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

/** A prompt: its untrusted texts, and the whole prompt, folded. Without untrusted texts, it is shown whole. `label`: the label of the untrusted texts. */
export function Prompt({ text, label }: { text: string; label?: string }): JSX.Element {
  const found = [...text.matchAll(outside)]
  if (found.length === 0) return <LongText text={text} label={label ?? 'Prompt'} />
  return (
    <>
      <p class="dim">
        <span class="chip">from outside</span> The agent reads this text between markers that say that it is not
        trusted.
      </p>
      {found.map(({ 2: words = '' }, at) => (
        <LongText key={at} text={words} label={label ?? 'Text from outside'} />
      ))}
      <details>
        <summary class="dim">the whole prompt, with its markers</summary>
        <LongText text={text} label="The whole prompt" />
      </details>
    </>
  )
}

type PayloadProps = {
  readonly request: RequestFields | undefined
  readonly onCopy: (what: string, text: string) => void
}

export function Payload({ request, onCopy }: PayloadProps): JSX.Element {
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

export function Headers({ request }: { request: RequestFields }): JSX.Element {
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
