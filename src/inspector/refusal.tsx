// One refused request: who sent it, and why it was refused. With `hookloom dev`, also its body.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { CallAnswer } from '../model/api/ask.ts'
import type { RefusalFields } from '../model/api/refusals.ts'
import { call } from './api.ts'
import { markUnseen } from './format.ts'
import { go } from './place.ts'
import { copyText, useSaid } from './said.ts'
import { Line, Sentence } from './text.tsx'
import { PayloadView } from './tree.tsx'
import { emptyBenchInput, keepBenchInput } from './typed.ts'

export type OpenedRefusal = {
  readonly refusal: RefusalFields
  /** The request, with its body in base64. Null unless `hookloom dev` runs the gateway and still has the request in memory. */
  readonly request: { readonly body: string } | null
}

export function RefusalView({ refusal, request }: OpenedRefusal): JSX.Element {
  const { said, report } = useSaid()
  const { requestId, client, credential, path, nearestHook, signature, status, code, error, trace } = refusal
  return (
    <>
      <header class="title">
        <h2>
          <span class="state refused">
            <span aria-hidden="true">⊘</span> refused
          </span>{' '}
          <Line text={path} max={200} />
        </h2>
        <code class="id">{requestId}</code>
      </header>
      <section class="problem" aria-label="Problem">
        <p>
          <b>
            {status} {code}
          </b>{' '}
          <Sentence text={error} />
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
        {signature !== null && (
          <>
            <dt>signature</dt>
            <dd>
              <Line text={signature.why} max={400} />
            </dd>
          </>
        )}
        {trace.map(({ mappingId, why }, at) => (
          <>
            <dt key={at}>
              <Line text={mappingId} max={80} />
            </dt>
            <dd>
              <Line text={why} max={400} />
            </dd>
          </>
        ))}
      </dl>
      {signature !== null && (
        <section aria-label="What verifies it">
          <p class="note">
            <Line text={signature.next} max={1_000} />
          </p>
          {signature.config !== null && (
            <pre tabIndex={0} aria-label="What to add to the configuration">
              {signature.config}
            </pre>
          )}
        </section>
      )}
      {request !== null && request.body !== '' && (
        <details class="part" open>
          <summary>
            <h3>Payload</h3>
          </summary>
          <PayloadView text={decodeBody(request.body)} onCopy={(what, text) => report(copyText(what, text))} />
          <p class="said" role="status">
            {said.text}
          </p>
        </details>
      )}
      {code === 'hook-unknown' && (
        <div class="tools">
          <button type="button" onClick={() => addHook(refusal.hook ?? path.replace(/^\/hooks\//, ''), request)}>
            add this hook
          </button>
        </div>
      )}
      {refusal.isKept && <KeptRefusals hook={refusal.hook} />}
      <p class="note">
        <code>hookloom verify --explain {requestId}</code> explains it under <code>hookloom dev</code>.
      </p>
    </>
  )
}

/** Verifies the kept requests of a hook again and runs the valid ones, in as many calls as needed. `isDry`: runs none. */
async function retryRefused(hook: string | undefined, isDry: boolean): Promise<string> {
  const sum = { ran: 0, repeated: 0, stillRefused: 0 }
  const reasons = new Set<string>()
  let after: number | undefined
  do {
    const query = { hook, dryRun: isDry ? 'true' : undefined, after }
    const part: CallAnswer<'POST /api/refusals/retry'> = await call('POST /api/refusals/retry', { query })
    sum.ran += part.ran
    sum.repeated += part.repeated
    sum.stillRefused += part.stillRefused
    for (const { reason } of part.reasons) reasons.add(reason)
    after = part.next
  } while (after !== undefined)
  const why = sum.stillRefused === 0 ? '' : `: ${[...reasons].slice(0, 3).join('; ')}`
  return `${sum.ran} ${isDry ? 'would run' : 'ran'}, ${sum.repeated} repeat a delivery, ${sum.stillRefused} ${isDry ? 'would be' : 'are'} still refused${why}.`
}

/** The buttons that verify the kept requests of a hook again, and run the valid ones or only count them. */
function KeptRefusals({ hook }: { hook: string | undefined }): JSX.Element {
  const { said, report } = useSaid()
  const [isBusy, setBusy] = useState(false)
  const act = (isDry: boolean) => {
    setBusy(true)
    report(retryRefused(hook, isDry).finally(() => setBusy(false)))
  }
  return (
    <section aria-label="Kept refused requests">
      <p class="note">Its request is kept, sealed. When the cause is corrected, it can be verified again.</p>
      <div class="tools">
        <button type="button" class="primary" disabled={isBusy} onClick={() => act(false)}>
          retry all kept ones of this hook
        </button>
        <button type="button" disabled={isBusy} onClick={() => act(true)}>
          would they work now?
        </button>
      </div>
      <p class="said" role="status">
        {markUnseen(said.text)}
      </p>
    </section>
  )
}

/** Opens the bench for the hook name of a refusal, which no mapping has yet, with the refused body. */
function addHook(hook: string, request: OpenedRefusal['request']): void {
  const body = request === null || request.body === '' ? '{}' : decodeBody(request.body)
  keepBenchInput(hook, { ...emptyBenchInput, body, template: 'Look at {{payload}}' })
  go({ view: 'hooks', bench: hook, from: '' })
}

function decodeBody(base64: string): string {
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)))
}
