// One refused request: what came, and why nothing let it in. Its payload is not kept.
import type { JSX } from 'preact'
import type { RefusalFields } from '../model/api-types.ts'
import { Line } from './text.tsx'

export function RefusalView({ refusal }: { refusal: RefusalFields }): JSX.Element {
  const { requestId, client, credential, path, nearestHook, status, code, error, trace } = refusal
  return (
    <>
      <header class="title">
        <h2>
          <Line text={path} most={200} /> <span class="dim">refused</span>
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
      <p class="note">
        <code>hookloom verify --explain {requestId}</code> explains it under <code>hookloom dev</code>.
      </p>
    </>
  )
}
