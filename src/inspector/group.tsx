// The deliveries that an edit changes in the same way. Shows the changes of one delivery at a time.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { ChangeFields, GroupFields } from '../model/api/replay.ts'
import { call } from './api.ts'
import { actOnAll } from './bulk.tsx'
import { Diff } from './diff.tsx'
import { markUnseen } from './format.ts'
import { Link } from './link.tsx'
import { captureDelivery, describeException } from './said.ts'
import { Line } from './text.tsx'

const maxChanges = 20

export const toClassName = (name: string) => name.replace(' ', '-')
export const countRequests = (count: number) => (count === 1 ? '1 request' : `${count} requests`)

type GroupProps = {
  readonly group: GroupFields
  readonly title: string
  readonly names: readonly [string, string]
  /** True: the files on disk cause the difference. False: the live code differs from the record. */
  readonly isEdit?: boolean
}

/** A group, with the changes of its example. If another delivery is chosen, it is replayed and its changes are shown. */
export function Group({ group, title, names, isEdit = false }: GroupProps): JSX.Element {
  const { paths, count, percent, deliveryIds, example } = group
  const [chosen, setChosen] = useState(0)
  const at = Math.min(chosen, count - 1)
  const id = deliveryIds[at] ?? example.deliveryId
  const { shown, said } = useMember(group, id)
  return (
    <section
      class={`group ${toClassName(title)}`}
      aria-label={`${title}: ${countRequests(count)}, such as ${example.deliveryId}`}
    >
      <h3>
        <b>{title}</b>{' '}
        {paths.join() !== 'decision' && (
          <code>
            <Line text={paths.join(', ')} max={300} />
          </code>
        )}{' '}
        <span class="dim">
          {countRequests(count)}, {percent} %
        </span>
      </h3>
      <div class="tools">
        {isEdit && count > 1 ? (
          <>
            <button type="button" disabled={at === 0} onClick={() => setChosen(at - 1)}>
              previous
            </button>
            <span class="dim">
              {at + 1} of {count}
            </span>
            <button type="button" disabled={at === count - 1} onClick={() => setChosen(at + 1)}>
              next
            </button>
          </>
        ) : (
          <span class="dim">for example</span>
        )}
        <DeliveryLink id={id} />
      </div>
      {isEdit && <GroupTools shown={id} ids={deliveryIds} />}
      {said !== '' && (
        <p class="note" role="status">
          {markUnseen(said)}
        </p>
      )}
      {shown.slice(0, maxChanges).map((change) => (
        <div class="change" key={change.path}>
          <h4>
            <code>
              <Line text={change.path} max={200} />
            </code>
          </h4>
          <Diff {...change} names={names} />
        </div>
      ))}
      {shown.length > maxChanges && <p class="note">{shown.length - maxChanges} more fields.</p>}
    </section>
  )
}

/** The changes of one delivery of a group. The report has those of the example; another delivery is replayed, again after each save. */
function useMember({ example }: GroupFields, id: string): { shown: readonly ChangeFields[]; said: string } {
  const [other, setOther] = useState<{ readonly id: string; readonly changes: readonly ChangeFields[] }>()
  const [said, setSaid] = useState('')
  const isExample = id === example.deliveryId
  useEffect(() => {
    setSaid('')
    if (isExample) return
    const ended = new AbortController()
    const read = async () => {
      const { groups: found } = await call('POST /api/replay', { query: { ids: id }, signal: ended.signal })
      setOther({ id, changes: found[0]?.example.changes ?? [] })
      setSaid(found.length === 0 ? 'This delivery does not differ any more.' : '')
    }
    void read().catch((error: unknown) => {
      if (!ended.signal.aborted) setSaid(describeException(error, 'The replay failed.'))
    })
    return () => ended.abort()
  }, [example, id])
  if (isExample) return { shown: example.changes, said: '' }
  // the previous delivery is shown until the next one is replayed, so nothing on the page moves
  return { shown: other?.changes ?? example.changes, said: other?.id === id ? said : said || 'Replaying …' }
}

type GroupToolsProps = { readonly shown: string; readonly ids: readonly string[] }

/** The buttons of a group: make a fixture of the shown delivery, or run all deliveries of the group again. */
function GroupTools({ shown, ids }: GroupToolsProps): JSX.Element {
  const [said, setSaid] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [isSure, setSure] = useState(false)
  const act = async (work: () => Promise<void>) => {
    setBusy(true)
    await work()
    setBusy(false)
  }
  const capture = () =>
    act(async () => setSaid(await captureDelivery(shown).catch((error: unknown) => describeException(error))))
  return (
    <>
      <div class="tools">
        <button type="button" disabled={isBusy} onClick={() => void capture()}>
          keep as fixture
        </button>
        <button
          type="button"
          disabled={isBusy}
          onClick={() => {
            setSure(!isSure)
            if (isSure) void act(() => actOnAll(ids, 'again', setSaid))
          }}
        >
          {isSure
            ? `really run ${countRequests(ids.length)}: replies may be sent`
            : ids.length === 1
              ? 'run it again'
              : `run these ${ids.length} again`}
        </button>
      </div>
      <p class="said" role="status">
        {markUnseen(said)}
      </p>
    </>
  )
}

export function DeliveryLink({ id }: { id: string }): JSX.Element {
  return (
    <Link class="link id" to={{ view: 'list', id }}>
      {id}
    </Link>
  )
}
