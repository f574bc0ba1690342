// One refused request: who sent it, and why it was refused. Under `hookloom dev`, also the request.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { RefusalFields } from '../model/api-types.ts'
import { Line } from './text.tsx'
import { PayloadView } from './tree.tsx'

export type OpenedRefusal = {
  readonly refusal: RefusalFields
  /** Its body, in base64. Null unless the gateway keeps refused requests, as `hookloom dev` does. */
  readonly request: { readonly body: string } | null
}

export function RefusalView({ refusal, request }: OpenedRefusal): JSX.Element {
  const [said, setSaid] = useState('')
  const { requestId, client, credential, path, nearestHook, status, code, error, trace } = refusal
  return (
    <>
      <header class="title">
        <h2>
          <span class="state refused">
            <span aria-hidden="true">⊘</span> refused
          </span>{' '}
          <Line text={path} most={200} />
        </h2>
        <code class="id">{requestId}</code>
      </header>
      <section class="problem" aria-label="Problem">
        <p>
          <b>
            {status} {code}
          </b>{' '}
          <Line text={error} most={2_000} />
        </p>
      </section>
      <dl class="fields">
        <dt>client</dt>
        <dd>{client}</dd>
        <dt>credential</dt>
        <dd>{credential}</dd>
        {nearestHook !== null && (
          <>
            <dt>probably meant</dt>
            <dd>{nearestHook}</dd>
          </>
        )}
        {trace.map(({ mappingId, why }, at) => (
          <>
            <dt key={at}>
              <Line text={mappingId} most={80} />
            </dt>
            <dd>
              <Line text={why} most={400} />
            </dd>
          </>
        ))}
      </dl>
      {request !== null && request.body !== '' && (
        <details class="part" open>
          <summary>
            <h3>Payload</h3>
          </summary>
          <PayloadView
            text={decodeBody(request.body)}
            onCopy={(what, text) =>
              void navigator.clipboard.writeText(text).then(() => setSaid(`${what} is in the clipboard.`))
            }
          />
          <p class="said" role="status">
            {said}
          </p>
        </details>
      )}
      <p class="note">
        <code>hookloom verify --explain {requestId}</code> explains it under <code>hookloom dev</code>.
      </p>
    </>
  )
}

function decodeBody(base64: string): string {
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)))
}
