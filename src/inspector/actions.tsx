// The actions of an operator on a delivery. Each action shows its result.
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { RequestFields, ShownDelivery } from '../model/api/answers.ts'
import { call } from './api.ts'
import { isCopyable, toCurl } from './curl.ts'
import { markUnseen } from './format.ts'
import { formatJson, readJson } from './json.ts'
import { go } from './place.ts'
import { countJobs } from './rows.ts'
import { captureDelivery, copyText, describeException, nothingSaid, type Said } from './said.ts'

/** How long a drop can be undone. The page sends the drop only after this time, because the gateway then deletes the request. */
export const undoMs = 5_000

type ActionsProps = {
  readonly delivery: ShownDelivery
  readonly request: RequestFields | undefined
  readonly hooksUrl: string
  readonly said: Said
  readonly onSay: (said: Said) => void
  readonly onDone: () => void
}

export function Actions({ delivery, request, hooksUrl, said, onSay, onDone }: ActionsProps): JSX.Element {
  const { deliveryId, state, jobs } = delivery
  const [isBusy, setBusy] = useState(false)
  const [edited, setEdited] = useState<string>()
  const [isNaming, setNaming] = useState(false)
  const [isSure, setSure] = useState(false)
  const menu = useRef<HTMLDetailsElement>(null)
  const params = { id: deliveryId }
  const isOpen = state === 'parked' || state === 'pending'
  const isDead = jobs.some((job) => job.state === 'dead')
  const isFailing = countJobs(jobs).failing > 0
  const canRetry = isOpen || isDead || isFailing
  const isUnderWay = isOpen || jobs.some((job) => job.state === 'queued' || job.state === 'running')
  const canDrop = isOpen || jobs.some((job) => job.state === 'queued' || job.state === 'dead')

  useEffect(() => {
    onSay(nothingSaid)
    setEdited(undefined)
    setNaming(false)
    setSure(false)
    closeMenu()
  }, [deliveryId])

  function closeMenu(): void {
    if (menu.current !== null) menu.current.open = false
  }

  async function act(work: () => Promise<string>): Promise<void> {
    closeMenu()
    setBusy(true)
    try {
      onSay({ text: await work(), isBad: false })
      onDone()
    } catch (error) {
      onSay({ text: describeException(error), isBad: true })
    } finally {
      setBusy(false)
    }
  }

  const retry = () =>
    act(async () => {
      const { state: now, jobs: queued, tried = [] } = await call('POST /api/deliveries/{id}/retry', { params })
      if (tried.length > 0) return `${tried.length + queued.length} tried now.`
      return queued.length > 0 ? `${queued.length} queued again.` : `It ran again and is ${now}.`
    })
  const runAgain = (body?: string) =>
    act(async () => {
      const made = await call('POST /api/deliveries/{id}/again', {
        params,
        ...(body !== undefined && { body: { body } }),
      })
      setEdited(undefined)
      go({ id: made.deliveryId ?? '' })
      return `The new delivery is ${made.state}.`
    })
  const capture = (name: string) =>
    act(async () => {
      const made = await captureDelivery(deliveryId, name === '' ? {} : { name })
      setNaming(false)
      // the form that had the focus no longer exists
      menu.current?.querySelector('summary')?.focus()
      return made
    })
  const copyCurl = (copied: RequestFields) =>
    act(async () => {
      const copiedWell = await copyText('The curl command', toCurl(copied, hooksUrl, delivery.hook))
      const signed =
        ' The signature covers the id of the delivery, so the gateway answers it as a duplicate: use "run again".'
      return `${copiedWell}${copied.hasSignedId ? signed : ''}`
    })

  const retryButton = (
    <button type="button" class="primary" id="retry" disabled={!canRetry || isBusy} onClick={retry}>
      {isFailing && !isDead && !isOpen ? 'try now' : 'retry'} <kbd>r</kbd>
    </button>
  )
  const askOrRunAgain = () => {
    if (isUnderWay && !isSure) return setSure(true)
    setSure(false)
    return void runAgain()
  }
  // not the main button: another turn costs, and may repeat what the first one did
  const againButton = (
    <button type="button" disabled={request === undefined || isBusy} onClick={askOrRunAgain}>
      {isSure ? 'really run again: a run of this delivery has not ended' : 'run again'}
    </button>
  )
  return (
    <div class="actions">
      <div role="group" aria-label="Actions">
        {canRetry ? retryButton : againButton}
        <button
          type="button"
          id="copy-curl"
          disabled={request === undefined || !isCopyable(request)}
          onClick={() => request && copyCurl(request)}
        >
          copy as curl <kbd>c</kbd>
        </button>
        <details class="menu" ref={menu}>
          <summary>more</summary>
          <div>
            {canRetry && againButton}
            <button
              type="button"
              disabled={request?.encoding !== 'utf8' || isBusy}
              onClick={() => {
                closeMenu()
                setEdited(request?.body)
              }}
            >
              edit and send
            </button>
            <button
              type="button"
              disabled={request?.encoding !== 'utf8'}
              onClick={() => go({ view: 'hooks', bench: delivery.hook, from: deliveryId })}
            >
              open on the bench
            </button>
            <button
              type="button"
              disabled={request === undefined || delivery.madeBy?.kind !== 'transform' || isBusy}
              onClick={() => {
                closeMenu()
                setNaming(true)
              }}
              title="Writes the request, without its secrets, as a test of the transform"
            >
              capture as fixture
            </button>
          </div>
        </details>
        {canDrop && <Drop key={deliveryId} id={deliveryId} onSay={onSay} onDone={onDone} />}
      </div>
      <p class={said.isBad ? 'said bad' : 'said'} role="status">
        {markUnseen(said.text)}
      </p>
      {isNaming && <FixtureForm isBusy={isBusy} onName={capture} />}
      {edited !== undefined && <Editor body={edited} isBusy={isBusy} onSend={runAgain} />}
    </div>
  )
}

type DropProps = { readonly id: string; readonly onSay: (said: Said) => void; readonly onDone: () => void }

/** The button that drops a delivery. The drop happens after some seconds, or at once when the delivery is closed. */
function Drop({ id, onSay, onDone }: DropProps): JSX.Element {
  const [isWaiting, setWaiting] = useState(false)
  const isWanted = useRef(false)

  async function drop(): Promise<void> {
    isWanted.current = false
    const said = await call('POST /api/deliveries/{id}/drop', { params: { id } }).then(
      () => ({ text: 'It is dropped.', isBad: false }),
      (error: unknown) => ({ text: describeException(error), isBad: true }),
    )
    setWaiting(false)
    onSay(said)
    onDone()
  }

  useEffect(() => {
    if (!isWaiting) return
    isWanted.current = true
    // a click on undo clears `isWanted` at once; the timer is cleared only by a later effect
    const timer = setTimeout(() => void (isWanted.current && drop()), undoMs)
    return () => clearTimeout(timer)
  }, [isWaiting])
  useEffect(
    () => () =>
      void (isWanted.current && call('POST /api/deliveries/{id}/drop', { params: { id } }).catch(() => undefined)),
    [],
  )

  if (!isWaiting) {
    return (
      <button type="button" class="apart" onClick={() => setWaiting(true)}>
        drop
      </button>
    )
  }
  return (
    <button
      type="button"
      class="apart"
      onClick={() => {
        isWanted.current = false
        setWaiting(false)
      }}
    >
      undo the drop
    </button>
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
  const node = readJson(body)
  return node === undefined ? body : formatJson(node)
}
