// The report of a replay: the number of requests of each class, the groups of changes with an example each, and the requests that were not
// compared.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { ReplayClass, ReplayReport } from '../model/api/replay.ts'
import { countRequests, Group, DeliveryLink, toClassName } from './group.tsx'
import { Table } from './table.tsx'
import { CodeFrame, Line, Time } from './text.tsx'

/** The maximum number of shown groups: a report may have a group for each request. */
const maxGroups = 50

const sides = {
  live: ['before: live code', 'after: files on disk'],
  recorded: ['before: as it was recorded', 'after: files on disk, which are live'],
  base: ['before: the base', 'after: the edit'],
} as const

/** `isFiltered`: only the kept requests that match the filters were replayed. */
export function Report({ report, isFiltered }: { report: ReplayReport; isFiltered: boolean }): JSX.Element {
  const { total, counts, groups: all, unstable, drift, tooLarge, notRun, problems, compared, deliveries } = report
  const [only, setOnly] = useState<ReplayClass>()
  const chosen = only !== undefined && counts[only] > 0 ? only : undefined
  const isInChosenClass = (one: { readonly class: ReplayClass }) => chosen === undefined || one.class === chosen
  const groups = all.filter(isInChosenClass)
  if (total === 0 && tooLarge.length === 0) {
    const isEmpty = problems.every(({ notCompared }) => notCompared === 0)
    return (
      <>
        <Problems problems={problems} />
        {!isEmpty ? undefined : isFiltered ? (
          <p class="empty">No kept request fits these filters.</p>
        ) : (
          <p class="empty">
            No request is kept. <code>"retain": 100</code> in <code>hooks</code> or in a mapping keeps the newest
            requests, and <code>hookloom dev</code> does so by itself.
          </p>
        )}
      </>
    )
  }
  // as: the keys of `counts` are these names
  const names = (Object.keys(counts) as ReplayClass[]).filter((name) => counts[name] > 0)
  return (
    <>
      <Problems problems={problems} />
      <ul class="classes" aria-label="Classes">
        {names.map((name) => (
          <li key={name} class={toClassName(name)}>
            <button
              type="button"
              aria-pressed={chosen === name}
              onClick={() => setOnly(chosen === name ? undefined : name)}
            >
              <b>{counts[name]}</b> {name} <span class="dim">{toPercent(counts[name], total)} %</span>
            </button>
          </li>
        ))}
      </ul>
      {groups.slice(0, maxGroups).map((group, at) => (
        <Group key={`${group.class} ${at}`} group={group} title={group.class} names={sides[compared]} isEdit />
      ))}
      {groups.length > maxGroups && <p class="note">{groups.length - maxGroups} more groups.</p>}
      {unstable.length > 0 && (
        <section class="unstable">
          <h3>Unstable fields</h3>
          <p class="note">Two runs of the same code differ there, so they are left out.</p>
          <ul>
            {unstable.map(({ path, count }) => (
              <li key={path}>
                <code>
                  <Line text={path} max={200} />
                </code>{' '}
                <span class="dim">{countRequests(count)}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
      {(chosen === undefined ? drift : []).slice(0, maxGroups).map((group, at) => (
        <Group
          key={`drift ${at}`}
          group={group}
          title="decided otherwise when it came"
          names={['before: as it was recorded', 'after: live code']}
        />
      ))}
      {tooLarge.length > 0 && (
        <p class="note">{countRequests(tooLarge.length)} not replayable: larger than 256 KiB, so not kept.</p>
      )}
      {notRun > 0 && <p class="note">{countRequests(notRun)} not replayed: the time was up.</p>}
      <Requests deliveries={deliveries.filter(isInChosenClass)} only={chosen} />
    </>
  )
}

/** Why modules on disk do not load. */
function Problems({ problems }: Pick<ReplayReport, 'problems'>): JSX.Element {
  return (
    <>
      {problems.map(({ module, detail, frame, notCompared }) => (
        <section class="problem" key={module}>
          <p>
            <Line text={detail} max={1_000} />
          </p>
          {frame !== null && <CodeFrame text={frame} />}
          {notCompared > 0 && (
            <p class="note">{countRequests(notCompared)} not compared: this save does not go live.</p>
          )}
        </section>
      ))}
    </>
  )
}

const toPercent = (count: number, total: number) => (total === 0 ? 0 : Math.round((count / total) * 1_000) / 10)

type RequestsProps = Pick<ReplayReport, 'deliveries'> & { readonly only: ReplayClass | undefined }

function Requests({ deliveries, only }: RequestsProps): JSX.Element {
  const [isOpen, setOpen] = useState(false)
  useEffect(() => void (only === 'same' && setOpen(true)), [only])
  return (
    <details class="part" open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <h3>{only === undefined ? 'All requests' : `The requests: ${only}`}</h3>
      </summary>
      {isOpen && (
        <Table label="Table of the requests" heads={['time', 'hook', 'result', 'delivery']}>
          {deliveries.map((one) => (
            <tr key={one.deliveryId}>
              <td>
                <Time at={one.receivedAt} />
              </td>
              <td>
                <Line text={`${one.hook} ${one.event ?? ''}`} max={80} />
              </td>
              <td class={toClassName(one.class)}>
                {one.class} <Line text={one.paths.join(', ')} max={120} />
              </td>
              <td>
                <DeliveryLink id={one.deliveryId} />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </details>
  )
}
