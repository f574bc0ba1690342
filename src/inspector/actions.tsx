// What an operator does with a delivery. Each action says what it did, in the words of the gateway.
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { CapturedFields } from '../model/api-replay-types.ts'
import type { RequestFields, RetryFields, ShownDelivery } from '../model/api-types.ts'
import { post } from './api.ts'
import { isCopyable, toCurl } from './curl.ts'
import { go } from './place.ts'
import { markUnseen } from './visible.ts'

type ActionsProps = {
  readonly delivery: ShownDelivery
  readonly request: RequestFields | undefined
  readonly hooksUrl: string
  readonly onDone: () => void
}

export function Actions({ delivery, request, hooksUrl, onDone }: ActionsProps): JSX.Element {
  const { deliveryId, state, jobs } = delivery
  const [said, setSaid] = useState<{ text: string; isBad: boolean }>({ text: '', isBad: false })
  const [isBusy, setBusy] = useState(false)
  const [edited, setEdited] = useState<string>()
  const [isNaming, setNaming] = useState(false)
  const path = `/api/deliveries/${encodeURIComponent(deliveryId)}`
  const isOpen = state === 'parked' || state === 'pending'
  const canRetry = isOpen || jobs.some((job) => job.state === 'dead')

  // the form that had the focus is gone after a capture
  const opener = useRef<HTMLButtonElement>(null)
  const isCaptured = useRef(false)
  useEffect(() => {
    if (isBusy || !isCaptured.current) return
    isCaptured.current = false
    if (document.activeElement === document.body) opener.current?.focus()
  }, [isBusy])

  useEffect(() => {
    setSaid({ text: '', isBad: false })
    setEdited(undefined)
    setNaming(false)
  }, [deliveryId])

  async function act(work: () => Promise<string>): Promise<void> {
    setBusy(true)
    try {
      setSaid({ text: await work(), isBad: false })
      onDone()
    } catch (error) {
      setSaid({ text: error instanceof Error ? error.message : 'It failed.', isBad: true })
    } finally {
      setBusy(false)
    }
  }

  const retry = () =>
    act(async () => {
      const { state: now, jobs: queued } = await post<RetryFields>(`${path}/retry`)
      return queued.length > 0 ? `${queued.length} queued again.` : `It ran again and is ${now}.`
    })
  const drop = () =>
    act(async () => {
      await post(`${path}/drop`)
      return 'It is dropped.'
    })
  const runAgain = (body?: string) =>
    act(async () => {
      const made = await post<RetryFields>(`${path}/again`, body === undefined ? undefined : { body })
      setEdited(undefined)
      go({ id: made.deliveryId ?? '' })
      return `The new delivery is ${made.state}.`
    })
  const capture = (name: string) =>
    act(async () => {
      const made = await post<CapturedFields>(`${path}/capture`, name === '' ? {} : { name })
      setNaming(false)
      isCaptured.current = true
      const removed = made.removed.length === 0 ? '' : ` Removed: ${made.removed.join(', ')}.`
      const note = made.note === null ? '' : ` It fails until the code is fixed: ${made.note}`
      return `Created ${made.file}. It expects the decision ${made.decision}.${removed}${note}`
    })
  const copy = (what: string, text: string) =>
    act(async () => {
      await navigator.clipboard.writeText(text)
      return `${what} is in the clipboard.`
    })

  return (
    <div class="actions">
      <div role="group" aria-label="Actions">
        <button type="button" id="retry" disabled={!canRetry || isBusy} onClick={retry} title="r">
          retry
        </button>
        <button type="button" disabled={!isOpen || isBusy} onClick={drop}>
          drop
        </button>
        <button type="button" disabled={request === undefined || isBusy} onClick={() => runAgain()}>
          run again
        </button>
        <button
          type="button"
          disabled={request?.encoding !== 'utf8' || isBusy}
          aria-expanded={edited !== undefined}
          onClick={() => setEdited(edited === undefined ? request?.body : undefined)}
        >
          edit and send
        </button>
        <button
          type="button"
          id="copy-curl"
          disabled={request === undefined || !isCopyable(request)}
          onClick={() => request && copy('The curl command', toCurl(request, hooksUrl, delivery.hook))}
          title="c"
        >
          copy as curl
        </button>
        <button
          type="button"
          ref={opener}
          disabled={request === undefined || delivery.madeBy?.kind !== 'transform' || isBusy}
          aria-expanded={isNaming}
          onClick={() => setNaming(!isNaming)}
          title="Writes the request, without its secrets, as a test of the transform"
        >
          capture as fixture
        </button>
        {request !== undefined && (
          <button type="button" onClick={() => copy('The payload', request.body)}>
            copy payload
          </button>
        )}
      </div>
      <p class={said.isBad ? 'said bad' : 'said'} role="status">
        {markUnseen(said.text)}
      </p>
      {isNaming && <FixtureForm isBusy={isBusy} onName={capture} />}
      {edited !== undefined && <Editor body={edited} isBusy={isBusy} onSend={runAgain} />}
    </div>
  )
}

function Editor({
  body,
  isBusy,
  onSend,
}: {
  body: string
  isBusy: boolean
  onSend: (body: string) => void
}): JSX.Element {
  const area = useRef<HTMLTextAreaElement>(null)
  useEffect(() => area.current?.focus(), [])
  return (
    <div class="editor">
      <textarea ref={area} aria-label="Body" spellcheck={false} rows={12} defaultValue={formatBody(body)} />
      <button type="button" disabled={isBusy} onClick={() => onSend(area.current?.value ?? '')}>
        send as a new delivery
      </button>
    </div>
  )
}

function FixtureForm({ isBusy, onName }: { isBusy: boolean; onName: (name: string) => void }): JSX.Element {
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.focus(), [])
  return (
    <form
      class="editor"
      onSubmit={(event) => {
        event.preventDefault()
        onName(field.current?.value.trim() ?? '')
      }}
    >
      <label>
        name of the fixture{' '}
        <input ref={field} placeholder="by its event and id" spellcheck={false} autocomplete="off" />
      </label>
      <button type="submit" disabled={isBusy}>
        write the fixture
      </button>
    </form>
  )
}

function formatBody(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), undefined, 2)
  } catch {
    return body
  }
}
