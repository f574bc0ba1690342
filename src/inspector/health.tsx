// The health of the gateway: its live code, its queues, the gateways on its store, and the last hour.
import type { JSX } from 'preact'
import type { AttentionFields } from '../model/api/operations.ts'
import type { HealthFields } from '../model/api/health.ts'
import { call } from './api.ts'
import { Budgets, type Operations, Pauses, Senders } from './held.tsx'
import { useHooks } from './hooks.tsx'
import { Link } from './link.tsx'
import { toEditorUrl } from './pipe.tsx'
import { Doctor, Outlets } from './outlets.tsx'
import { Nodes, QueueView } from './queues.tsx'
import { Plot } from './plot.tsx'
import { usePolled } from './polled.ts'
import { describeSince, formatCount } from './format.ts'
import { Table } from './table.tsx'
import { Age, CodeFrame, Line, Sentence, Time, useNow } from './text.tsx'

const everyMs = 5_000

/** Reads the health every five seconds while the page is visible, and at once when `version` changes. */
export function useHealth(version: string): HealthFields | undefined {
  return usePolled((signal) => call('GET /api/health', { signal }), { everyMs, version })
}

type HealthProps = {
  readonly health: HealthFields | undefined
  readonly operations: Operations
  readonly attention: AttentionFields | undefined
}

export function Health({ health, operations, attention }: HealthProps): JSX.Element {
  if (health === undefined) return <p class="empty">Reading …</p>
  const { problems, store, minutes } = health
  const own = describeSince(health.minutesSince.others)
  return (
    <div class="health" id="view" tabIndex={0} role="region" aria-label="Health">
      <AttentionSummary attention={attention} />
      <section aria-label="Live code">
        <h2>Live code</h2>
        <p class={health.degraded ? 'warn' : 'good'}>
          {health.degraded ? 'A saved file is not live.' : 'All saved files are live.'}{' '}
          {health.held && (
            <Link class="link" to={{ view: 'replay' }}>
              It waits, because it would change recent deliveries.
            </Link>
          )}{' '}
          <span class="dim">
            Generation {health.generation}
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
              <Sentence text={problem.detail} />
            </p>
            {problem.frame !== undefined && <CodeFrame text={problem.frame} />}
          </div>
        ))}
        {[store.trouble, store.warning, health.withoutChannels].map(
          (text) =>
            text !== null && (
              <p class="problem" key={text}>
                <Sentence text={text} />
              </p>
            ),
        )}
      </section>
      <Pauses operations={operations} />
      <Budgets budgets={operations.budgets} />
      <HookRates version={health.generation} />
      <Outlets version={health.generation} />
      <QueueView health={health} />
      <Senders senders={operations.senders} />
      <Nodes health={health} />
      <Doctor />
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
              { name: withTime('refused', own), of: ({ refused }) => refused },
            ]}
          />
          <Plot
            title={withTime('Latency, ms', own)}
            minutes={minutes}
            isStacked={false}
            series={[
              { name: 'p50', of: ({ latencyMs }) => latencyMs?.p50 },
              { name: 'p95', of: ({ latencyMs }) => latencyMs?.p95 },
            ]}
          />
          <Plot
            title={withTime('Runs a minute', own)}
            minutes={minutes}
            series={[
              { name: 'done', of: ({ runs }) => runs.done },
              { name: 'retried', of: ({ runs }) => runs.retried },
              { name: 'dead', of: ({ runs }) => runs.dead },
            ]}
          />
          <Plot
            title={withTime('Reloads a minute', own)}
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

/** A name with the time since when it is counted, unless that is the whole hour. */
const withTime = (name: string, since: string) => (since === '' ? name : `${name} ${since}`)

/** The maximum number of causes in the summary, and of characters of each cause. */
const [maxCauses, maxCauseChars] = [4, 120]

/** The cause without its full stop. A long cause is cut and ends with an ellipsis. */
const cutCause = (cause: string) =>
  cause.length > maxCauseChars ? cause.slice(0, maxCauseChars).replace(/\s+\S*$/, ' …') : cause.replace(/\.$/, '')

/** Says in one sentence what needs attention. */
function AttentionSummary({ attention }: { attention: AttentionFields | undefined }): JSX.Element | null {
  if (attention === undefined) return null
  const { count, groups } = attention
  if (count === 0) return <p class="verdict">Nothing needs attention.</p>
  const causes = groups.slice(0, maxCauses).map((group) => {
    const cause = group.place ?? group.title
    return `${formatCount(group.count)} ${group.kind}: ${cutCause(cause)}`
  })
  const rest = groups.length > maxCauses ? `; and ${groups.length - maxCauses} more causes` : ''
  return (
    <p class="verdict bad">
      <Sentence text={`${causes.join('; ')}${rest}.`.replace(/…\.$/, '…')} max={800} />{' '}
      <Link class="link" to={{ view: 'list', state: 'attention', id: '' }}>
        show them
      </Link>
    </p>
  )
}

/** The traffic of each hook in the last hour. Hooks with failures come first. */
function HookRates({ version }: { version: string }): JSX.Element | null {
  const now = useNow(0)
  // this text changes at least once a minute
  const { hooks } = useHooks(`${version} ${Math.floor(now / 60_000)}`)
  const busy = (hooks?.hooks ?? []).filter(
    ({ lastHour, lastFailure }) => lastHour.deliveries + lastHour.refused > 0 || lastFailure,
  )
  if (busy.length === 0) return null
  const failures = ({ lastHour }: (typeof busy)[number]) => lastHour.parked + lastHour.refused
  const { deliveries: from = '', others = '' } = hooks?.countedSince ?? {}
  const own = describeSince(others, now)
  const counted = Math.max(1, (now - Date.parse(from)) / 60_000)
  return (
    <section aria-label="Hooks in the last hour">
      <h2>Hooks in the last hour</h2>
      <Table
        label="Table of the hooks"
        heads={[
          'hook',
          'a minute',
          withTime('deliveries', describeSince(from, now)),
          'parked',
          withTime('refused', own),
          withTime('duplicates', own),
          'last open failure',
        ]}
      >
        {busy
          .toSorted((one, other) => failures(other) - failures(one))
          .map(({ name, lastHour, lastFailure }) => (
            <tr key={name ?? ''}>
              <td>
                <Link class="link" to={{ view: 'list', hook: name ?? '', id: '' }}>
                  <Line text={name ?? 'any other name'} max={60} />
                </Link>
              </td>
              <td>{Number((lastHour.deliveries / counted).toPrecision(2))}</td>
              <td>{formatCount(lastHour.deliveries)}</td>
              <td class={lastHour.parked > 0 ? 'bad' : ''}>{formatCount(lastHour.parked)}</td>
              <td class={lastHour.refused > 0 ? 'bad' : ''}>{formatCount(lastHour.refused)}</td>
              <td>{formatCount(lastHour.duplicates)}</td>
              <td>
                {lastFailure !== null && (
                  <Link class="link" to={{ view: 'list', id: lastFailure.id }}>
                    <Age at={Date.parse(lastFailure.at)} now={now} /> <Sentence text={lastFailure.title} max={100} />
                  </Link>
                )}
              </td>
            </tr>
          ))}
      </Table>
    </section>
  )
}
