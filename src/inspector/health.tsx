// The health of the gateway: its live code, its queues, the gateways on its store, and the last hour.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { HealthFields } from '../model/api-types.ts'
import { get } from './api.ts'
import { toEditorUrl } from './pipe.tsx'
import { go } from './place.ts'
import { Plot } from './plot.tsx'
import { formatCount, formatDuration } from './format.ts'
import { Line, LongText, Time } from './text.tsx'

const everyMs = 5_000

/** Reads the health every five seconds while the page is visible, and at once when `version` changes. */
export function useHealth(version: string): HealthFields | undefined {
  const [health, setHealth] = useState<HealthFields>()
  useEffect(() => {
    const ended = new AbortController()
    const read = () =>
      void get<HealthFields>('/api/health', ended.signal)
        .then(setHealth)
        .catch(() => undefined)
    read()
    const timer = setInterval(() => document.visibilityState === 'visible' && read(), everyMs)
    return () => {
      clearInterval(timer)
      ended.abort()
    }
  }, [version])
  return health
}

export function Health({ health }: { health: HealthFields | undefined }): JSX.Element {
  if (health === undefined) return <p class="empty">Reading …</p>
  const { problems, store, minutes } = health
  return (
    <div class="health" id="view" tabIndex={-1}>
      <section aria-label="Live code">
        <h2>Live code</h2>
        <p class={health.degraded ? 'warn' : 'good'}>
          {health.degraded ? 'A saved file is not live.' : 'All saved files are live.'}{' '}
          {health.held && (
            <button type="button" class="link" onClick={() => go({ view: 'replay' })}>
              It waits, because it would change recent deliveries.
            </button>
          )}{' '}
          <span class="dim">
            generation {health.generation}
            {health.lastReloadAt !== null && (
              <>
                , last reload <Time at={health.lastReloadAt} />
              </>
            )}
            {health.degraded && health.lastGoodAt !== null && (
              <>
                , the last good reload <Time at={health.lastGoodAt} />
              </>
            )}
          </span>
        </p>
        {problems.map((problem, at) => (
          <div class="problem" key={at}>
            <p>
              {problem.file !== null && (
                <a href={toEditorUrl(problem.file, problem.line)}>
                  {problem.module}:{problem.line}
                </a>
              )}{' '}
              <Line text={problem.detail} most={2_000} />
            </p>
            {problem.frame !== undefined && <LongText text={problem.frame} label="Code frame" />}
          </div>
        ))}
        {[store.trouble, store.warning, health.withoutChannels].map(
          (text) =>
            text !== null && (
              <p class="problem" key={text}>
                {text}
              </p>
            ),
        )}
      </section>
      <Queues health={health} />
      <Nodes health={health} />
      <section aria-label="The last hour">
        <h2>The last hour</h2>
        <div class="plots">
          <Plot
            title="Deliveries a minute"
            minutes={minutes}
            series={[
              { name: 'accepted', of: ({ deliveries }) => deliveries.accepted + deliveries.pending },
              { name: 'skipped', of: ({ deliveries }) => deliveries.skipped },
              { name: 'parked', of: ({ deliveries }) => deliveries.parked },
              { name: 'refused', of: ({ refused }) => refused },
            ]}
          />
          <Plot
            title="Latency, ms"
            minutes={minutes}
            isStacked={false}
            series={[
              { name: 'p50', of: ({ latencyMs }) => latencyMs?.p50 },
              { name: 'p95', of: ({ latencyMs }) => latencyMs?.p95 },
            ]}
          />
          <Plot
            title="Runs a minute"
            minutes={minutes}
            series={[
              { name: 'done', of: ({ runs }) => runs.done },
              { name: 'retried', of: ({ runs }) => runs.retried },
              { name: 'dead', of: ({ runs }) => runs.dead },
            ]}
          />
          <Plot
            title="Reloads a minute"
            minutes={minutes}
            series={[
              { name: 'live', of: ({ reloads }) => reloads.live },
              { name: 'not live', of: ({ reloads }) => reloads.refused },
            ]}
          />
        </div>
      </section>
    </div>
  )
}

function Queues({ health }: { health: HealthFields }): JSX.Element {
  const { deliveries, jobs, dueSince, lanes, store } = health
  const age = dueSince === null ? 'nothing waits' : formatDuration(Math.max(0, Date.now() - Date.parse(dueSince)))
  const facts: readonly (readonly [string, string, string?])[] = [
    ['parked', String(deliveries.parked), 'parked'],
    ['pending', String(deliveries.pending), 'waiting'],
    ['dead runs', String(jobs.dead), 'dead'],
    ['queued', String(jobs.queued)],
    ['running', String(jobs.running)],
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
                <button type="button" class={`link ${state}`} onClick={() => go({ view: 'list', state })}>
                  {value}
                </button>
              )}
            </dd>
          </div>
        ))}
      </dl>
      {lanes.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">lane</th>
              <th scope="col">jobs</th>
              <th scope="col">oldest</th>
              <th scope="col">state</th>
            </tr>
          </thead>
          <tbody>
            {lanes.map(({ lane, jobs: count, since, running }) => (
              <tr key={lane}>
                <td>
                  <Line text={lane} most={120} />
                </td>
                <td>{count}</td>
                <td>{formatDuration(Math.max(0, Date.now() - Date.parse(since)))}</td>
                <td>{running ? 'running' : 'waiting'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}

/** The gateways on the store. */
function Nodes({ health: { nodes, different } }: { health: HealthFields }): JSX.Element | null {
  if (nodes.length === 0) return null
  return (
    <section aria-label="Gateways">
      <h2>Gateways</h2>
      {different !== null && (
        <p class="problem">
          <Line text={different} most={2_000} />
        </p>
      )}
      <table>
        <thead>
          <tr>
            <th scope="col">gateway</th>
            <th scope="col">version</th>
            <th scope="col">generation</th>
            <th scope="col">address</th>
            <th scope="col">last seen</th>
          </tr>
        </thead>
        <tbody>
          {nodes.map(({ id, version, generation, address, seenAt }) => (
            <tr key={id}>
              <td>
                <Line text={id} most={80} />
              </td>
              <td>
                <Line text={version} most={40} />
              </td>
              <td>
                <Line text={generation} most={80} />
              </td>
              <td>
                <Line text={address} most={120} />
              </td>
              <td>
                <Time at={seenAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
