// The queues of the gateway, and all gateways on its store.
import type { JSX } from 'preact'
import type { HealthFields } from '../model/api/health.ts'
import { formatCount, formatDuration } from './format.ts'
import { Link } from './link.tsx'
import { Table } from './table.tsx'
import { Line, Sentence, Time } from './text.tsx'

export function QueueView({ health }: { health: HealthFields }): JSX.Element {
  const { deliveries, jobs, dueSince, lanes, store, slots } = health
  const late = dueSince === null ? 'none is due' : formatDuration(Math.max(0, Date.now() - Date.parse(dueSince)))
  const age = dueSince === null && jobs.queued === 0 ? 'nothing waits' : late
  const facts: readonly (readonly [string, string, string?])[] = [
    ['parked', String(deliveries.parked), 'parked'],
    ['pending', String(deliveries.pending), 'waiting'],
    ['dead runs', String(jobs.dead), 'dead'],
    ['queued', String(jobs.queued)],
    ['running', String(jobs.running)],
    ['slots', describeSlots(slots)],
    ['oldest due', age],
    ['bytes waiting', formatCount(store.waitingBytes)],
  ]
  return (
    <section aria-label="Queues">
      <h2>Queues</h2>
      <dl class="facts">
        {facts.map(([name, value, state]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              {state === undefined || value === '0' ? (
                value
              ) : (
                <Link class={`link ${state}`} to={{ view: 'list', state }}>
                  {value}
                </Link>
              )}
            </dd>
          </div>
        ))}
      </dl>
      {lanes.length > 0 && (
        <Table label="Table of the lanes" heads={['lane', 'jobs', 'oldest', 'state']}>
          {lanes.map(({ lane, jobs: count, since, running }) => (
            <tr key={lane}>
              <td>
                <Line text={lane} max={120} />
              </td>
              <td>{count}</td>
              <td>{formatDuration(Math.max(0, Date.now() - Date.parse(since)))}</td>
              <td>{running ? 'running' : 'waiting'}</td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  )
}

/** The slots of the gateway that serves this page. */
function describeSlots({ used, most, fullSince }: HealthFields['slots']): string {
  if (fullSince === null) return `${used} of ${most}`
  return `all ${most} full for ${formatDuration(Math.max(0, Date.now() - Date.parse(fullSince)))}`
}

/** The mailboxes and the like that this gateway watches. */
export function Sources({ sources }: Pick<HealthFields, 'sources'>): JSX.Element | null {
  if (sources.length === 0) return null
  return (
    <section aria-label="Sources">
      <h2>Sources</h2>
      <Table label="Table of the sources" heads={['source', 'account', 'last news', 'state']}>
        {sources.map(({ name, account, lastGoodAt, problems }) => (
          <tr key={name}>
            <td>
              <Line text={name} max={80} />
            </td>
            <td>
              <Line text={account ?? ''} max={120} />
            </td>
            <td>{lastGoodAt === null ? <span class="dim">none</span> : <Time at={lastGoodAt} />}</td>
            <td class={problems.length > 0 ? 'bad' : ''}>
              {problems.length === 0 ? 'watched' : <Sentence text={problems.join(' ')} max={300} />}
            </td>
          </tr>
        ))}
      </Table>
    </section>
  )
}

/** All gateways on the store. */
export function Nodes({ health: { nodes, different } }: { health: HealthFields }): JSX.Element | null {
  if (nodes.length === 0) return null
  return (
    <section aria-label="Gateways">
      <h2>Gateways</h2>
      {different !== null && (
        <p class="problem">
          <Line text={different} max={2_000} />
        </p>
      )}
      <Table label="Table of the gateways" heads={['gateway', 'version', 'generation', 'address', 'last seen']}>
        {nodes.map(({ id, version, generation, address, seenAt }) => (
          <tr key={id}>
            <td>
              <Line text={id} max={80} />
            </td>
            <td>
              <Line text={version} max={40} />
            </td>
            <td>
              <Line text={generation} max={80} />
            </td>
            <td>
              <Line text={address} max={120} />
            </td>
            <td>
              <Time at={seenAt} />
            </td>
          </tr>
        ))}
      </Table>
    </section>
  )
}
