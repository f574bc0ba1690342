// One refused request: when it came, with which signature, who sent it, and why it was refused. With `hookloom dev`, also its body.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { CallAnswer } from '../model/api/ask.ts'
import type { RefusalFields } from '../model/api/refusals.ts'
import { call } from './api.ts'
import { formatCount, markUnseen } from './format.ts'
import { go } from './place.ts'
import { copyText, useSaid } from './said.ts'
import { Ago, Line, Sentence, Time, useNow } from './text.tsx'
import { PayloadView } from './tree.tsx'
import { emptyBenchInput, keepBenchInput } from './typed.ts'

export type OpenedRefusal = {
  readonly refusal: RefusalFields
  /** The request, with its body in base64. Null unless `hookloom dev` runs the gateway and still has the request in memory. */
  readonly request: { readonly body: string } | null
}

export function RefusalView({ refusal, request }: OpenedRefusal): JSX.Element {
  const { said, report } = useSaid()
  const { requestId, receivedAt, client, credential, path, nearestHook, signature, status, code, error } = refusal
  const { reason, trace, proofs, expects } = refusal
  const now = useNow(receivedAt)
  return (
    <>
      <header class="title">
        <h2>
          <span class="state refused">
            <span aria-hidden="true">⊘</span> refused
          </span>{' '}
          <Line text={path} max={200} />
        </h2>
        <p class="dim">
          <Time at={new Date(receivedAt).toISOString()} /> (<Ago at={receivedAt} now={now} />){' '}
          <code class="id">{requestId}</code>
        </p>
      </header>
      <section class="problem" aria-label="Problem">
        <p>
          <b>
            <Sentence text={reason} />
          </b>
        </p>
        {expects.length > 0 && (
          <dl class="fields">
            <dt>came at</dt>
            <dd>
              <Time at={new Date(receivedAt).toISOString()} />
            </dd>
            <Proofs proofs={proofs} />
            {proofs.length === 0 && status === 401 && (
              <>
                <dt>signature</dt>
                <dd>no header has one</dd>
              </>
            )}
            <dt>expected</dt>
            <dd>the proof of {expects.join(', or ')}</dd>
          </dl>
        )}
        <p class="dim">
          The sender was told: {status} {code} {error !== reason && <Sentence text={error} />}
        </p>
        {refusal.isKept && (
          <>
            <p class="note">Its request is kept, sealed. When the cause is corrected, it can be verified again.</p>
            <div class="tools">
              <VerifyAgain hook={refusal.hook} />
            </div>
          </>
        )}
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
        {expects.length === 0 && <Proofs proofs={proofs} />}
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
      <p class="note">
        <code>hookloom verify --explain {requestId}</code> explains it under <code>hookloom dev</code>.
      </p>
    </>
  )
}

/** The headers of the proof that came. */
function Proofs({ proofs }: Pick<RefusalFields, 'proofs'>): JSX.Element {
  return (
    <>
      {proofs.map(({ name, value }) => (
        <>
          <dt key={name}>{name}</dt>
          <dd>
            <Line text={value} max={200} />
          </dd>
        </>
      ))}
    </>
  )
}

type Verified = { readonly accepted: number; readonly text: string }

/** Verifies the kept requests of a hook again and runs the valid ones, in as many calls as needed. `isDry`: runs none. */
async function verifyRefused(hook: string | undefined, isDry: boolean): Promise<Verified> {
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
  const { ran, repeated, stillRefused } = sum
  if (ran + repeated + stillRefused === 0) return { accepted: 0, text: 'No request of this hook is kept.' }
  const twice = repeated === 0 ? '' : `, ${repeated} ${repeated === 1 ? 'repeats' : 'repeat'} a delivery`
  const refused = `${stillRefused} ${isDry ? 'would be' : stillRefused === 1 ? 'is' : 'are'} still refused`
  const why = stillRefused === 0 ? '' : `, ${refused}: ${[...reasons].slice(0, 3).join('; ')}`
  return { accepted: ran, text: `${ran} ${isDry ? 'would be' : ran === 1 ? 'is' : 'are'} accepted${twice}${why}.` }
}

/** A button that verifies the kept requests of a hook again. The first click only says how many would be accepted. */
export function VerifyAgain({ hook }: { readonly hook: string | undefined }): JSX.Element {
  const { said, report } = useSaid()
  const [isBusy, setBusy] = useState(false)
  const [accepted, setAccepted] = useState(0)
  const act = (isDry: boolean) => {
    setBusy(true)
    const verify = async () => {
      const verified = await verifyRefused(hook, isDry)
      setAccepted(isDry ? verified.accepted : 0)
      return verified.text
    }
    report(verify().finally(() => setBusy(false)))
  }
  return (
    <>
      <button type="button" disabled={isBusy} onClick={() => act(true)}>
        verify again
      </button>
      {accepted > 0 && (
        <button type="button" class="primary" disabled={isBusy} onClick={() => act(false)}>
          accept {formatCount(accepted)}
        </button>
      )}
      <span class={said.isBad ? 'mended bad' : 'mended'} role="status">
        {markUnseen(said.text)}
      </span>
    </>
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
