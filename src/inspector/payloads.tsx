// The learnt payloads of a hook: its events, and the changes of their fields.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { ShapeFields } from '../model/api/shapes.ts'
import { call } from './api.ts'
import { formatCount, markUnseen } from './format.ts'
import { Link } from './link.tsx'
import { captureDelivery, useSaid } from './said.ts'
import { Ago, Line, useNow } from './text.tsx'

/** The maximum number of changes that are shown, the newest ones. */
const maxChanges = 12

/** A change begins with a path, which may be long, and says at its end what changed. */
const cutMiddle = (text: string) => (text.length > 300 ? `${text.slice(0, 150)} … ${text.slice(-140)}` : text)

type PayloadsProps = { readonly hook: string; readonly hasCode: boolean }

export function Payloads({ hook, hasCode }: PayloadsProps): JSX.Element | null {
  const [shapes, setShapes] = useState<readonly ShapeFields[]>([])
  const now = useNow(0)
  useEffect(() => {
    const ended = new AbortController()
    void call('GET /api/shapes', { query: { hook }, signal: ended.signal }).then(
      (found) => setShapes(found.shapes),
      () => undefined,
    )
    return () => ended.abort()
  }, [hook])
  if (shapes.length === 0) return null
  const changes = shapes
    .flatMap(({ source, event, changes: own }) => own.map((change) => ({ ...change, name: nameEvent(source, event) })))
    .toSorted((one, other) => (one.at < other.at ? 1 : -1))
  return (
    <section class="part" aria-label="Payloads">
      <h3>Payloads</h3>
      <ul>
        {shapes.map(({ source, event, requests, lastAt }) => (
          <li key={`${source} ${event}`}>
            <Line text={nameEvent(source, event)} max={120} />{' '}
            <span class="dim">
              {formatCount(requests)} {requests === 1 ? 'request' : 'requests'},{' '}
              <Ago at={Date.parse(lastAt)} now={now} />
            </span>
          </li>
        ))}
      </ul>
      {changes.length > 0 && (
        <>
          <h4>What changed</h4>
          <ul class="changes" aria-label="What changed">
            {changes.slice(0, maxChanges).map(({ at, text, name, example }) => (
              <li key={`${name} ${text}`}>
                <Line text={cutMiddle(`${name}: ${text}`)} />{' '}
                <span class="dim">
                  <Ago at={Date.parse(at)} now={now} />
                </span>{' '}
                {example !== null && <Example id={example} hasCode={hasCode} />}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  )
}

type ExampleProps = {
  readonly id: string
  readonly hasCode: boolean
  readonly report?: ReturnType<typeof useSaid>['report']
}

/** A kept request as an example. `hasCode`: the request can become a fixture. `report`: shows the result outside of this component. */
export function Example({ id, hasCode, report }: ExampleProps): JSX.Element {
  const { said, report: reportHere } = useSaid()
  return (
    <>
      <Link class="link" to={{ view: 'list', id }}>
        show one
      </Link>{' '}
      {hasCode && (
        <button type="button" onClick={() => (report ?? reportHere)(captureDelivery(id))}>
          make it a fixture
        </button>
      )}{' '}
      <span class={said.isBad ? 'bad' : 'dim'} role="status">
        {markUnseen(said.text)}
      </span>
    </>
  )
}

export function nameEvent(source: string | null, event: string | null): string {
  return [source, event].filter((word) => word !== null).join(' ') || 'any event'
}
