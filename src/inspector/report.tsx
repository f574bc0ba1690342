// The result of a replay: the number of requests of each class, the groups of changes with an example each, and what was not compared.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { GroupFields, ReplayClass, ReplayReport } from '../model/api-replay-types.ts'
import { Diff } from './diff.tsx'
import { go } from './place.ts'
import { Line, LongText, Time } from './text.tsx'

/** A report may have a group for each request. */
const mostGroups = 50
const mostChanges = 20

const sides = {
  live: ['live code', 'files on disk'],
  recorded: ['recorded when it came', 'files on disk, which are live'],
} as const

/** `isFiltered`: only some of the kept requests were asked for. */
export function Report({ report, isFiltered }: { report: ReplayReport; isFiltered: boolean }): JSX.Element {
  const { total, counts, groups, unstable, drift, tooLarge, notRun, problems, compared, deliveries } = report
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
  // as: counts has these names
  const names = (Object.keys(counts) as ReplayClass[]).filter((name) => counts[name] > 0)
  return (
    <>
      <Problems problems={problems} />
      <ul class="classes" aria-label="Classes">
        {names.map((name) => (
          <li key={name} class={toClassName(name)}>
            <b>{counts[name]}</b> {name} <span class="dim">{toPercent(counts[name], total)} %</span>
          </li>
        ))}
      </ul>
      {groups.slice(0, mostGroups).map((group, at) => (
        <Group key={`${group.class} ${at}`} group={group} title={group.class} names={sides[compared]} />
      ))}
      {groups.length > mostGroups && <p class="note">{groups.length - mostGroups} more groups.</p>}
      {unstable.length > 0 && (
        <section class="unstable">
          <h3>Unstable fields</h3>
          <p class="note">Two runs of the same code differ there, so they are left out.</p>
          <ul>
            {unstable.map(({ path, count }) => (
              <li key={path}>
                <code>
                  <Line text={path} most={200} />
                </code>{' '}
                <span class="dim">{countRequests(count)}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
      {drift.slice(0, mostGroups).map((group, at) => (
        <Group
          key={`drift ${at}`}
          group={group}
          title="decided otherwise when it came"
          names={['recorded when it came', 'live code']}
        />
      ))}
      {tooLarge.length > 0 && (
        <p class="note">{countRequests(tooLarge.length)} not replayable: larger than 256 KiB, so not kept.</p>
      )}
      {notRun > 0 && <p class="note">{countRequests(notRun)} not replayed: the time was up.</p>}
      <Requests deliveries={deliveries} />
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
            <Line text={detail} most={1_000} />
          </p>
          {frame !== null && <LongText text={frame} label="Code frame" />}
          {notCompared > 0 && (
            <p class="note">{countRequests(notCompared)} not compared: this save does not go live.</p>
          )}
        </section>
      ))}
    </>
  )
}

const toClassName = (name: string) => name.replace(' ', '-')
export const countRequests = (count: number) => (count === 1 ? '1 request' : `${count} requests`)
const toPercent = (count: number, total: number) => (total === 0 ? 0 : Math.round((count / total) * 1_000) / 10)

type GroupProps = { group: GroupFields; title: string; names: readonly [string, string] }

function Group({ group: { paths, count, percent, example }, title, names }: GroupProps): JSX.Element {
  const { deliveryId, changes } = example
  return (
    <section class={`group ${toClassName(title)}`} aria-label={`${title}: ${countRequests(count)}`}>
      <h3>
        <b>{title}</b>{' '}
        {paths.join() !== 'decision' && (
          <code>
            <Line text={paths.join(', ')} most={300} />
          </code>
        )}{' '}
        <span class="dim">
          {countRequests(count)}, {percent} %
        </span>
      </h3>
      <p>
        <span class="dim">for example</span> <Link id={deliveryId} />
      </p>
      {changes.slice(0, mostChanges).map((change) => (
        <div class="change" key={change.path}>
          <h4>
            <code>
              <Line text={change.path} most={200} />
            </code>
          </h4>
          <Diff {...change} names={names} />
        </div>
      ))}
      {changes.length > mostChanges && <p class="note">{changes.length - mostChanges} more fields.</p>}
    </section>
  )
}

function Link({ id }: { id: string }): JSX.Element {
  return (
    <button type="button" class="link id" onClick={() => go({ view: 'list', id })}>
      {id}
    </button>
  )
}

function Requests({ deliveries }: Pick<ReplayReport, 'deliveries'>): JSX.Element {
  const [isOpen, setOpen] = useState(false)
  return (
    <details class="part" open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <h3>All requests</h3>
      </summary>
      {isOpen && (
        <table>
          <thead>
            <tr>
              <th scope="col">time</th>
              <th scope="col">hook</th>
              <th scope="col">result</th>
              <th scope="col">delivery</th>
            </tr>
          </thead>
          <tbody>
            {deliveries.map((one) => (
              <tr key={one.deliveryId}>
                <td>
                  <Time at={one.receivedAt} />
                </td>
                <td>
                  <Line text={`${one.hook} ${one.event ?? ''}`} most={80} />
                </td>
                <td class={toClassName(one.class)}>
                  {one.class} <Line text={one.paths.join(', ')} most={120} />
                </td>
                <td>
                  <Link id={one.deliveryId} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </details>
  )
}
