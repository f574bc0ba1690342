// The health of the gateway: whether it is well, then what a person would look at, in this order. Each hook is in the view of the hooks.
import type { JSX } from 'preact'
import type { AttentionFields } from '../model/api/operations.ts'
import type { HealthFields } from '../model/api/health.ts'
import { call } from './api.ts'
import { Budgets, type Operations, Pauses } from './held.tsx'
import { Link } from './link.tsx'
import { toEditorUrl } from './pipe.tsx'
import { Doctor, Outlets } from './outlets.tsx'
import { Nodes, QueueView, Sources } from './queues.tsx'
import { Plot } from './plot.tsx'
import { usePolled } from './polled.ts'
import { describeSince, formatCount } from './format.ts'
import { CodeFrame, Sentence, Time } from './text.tsx'

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
      <Verdict attention={attention} health={health} />
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
      <QueueView health={health} />
      <Outlets version={health.generation} />
      <Sources sources={health.sources} />
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

/** Says in one sentence whether it is well, and else what needs a person. */
function Verdict({ attention, health }: { attention: AttentionFields | undefined; health: HealthFields }): JSX.Element {
  if (attention === undefined) return <p class="verdict">Reading …</p>
  const { count, groups } = attention
  const needs = groups.filter(({ kind }) => kind !== 'waiting')
  const own = [
    ...(health.degraded ? ['a saved file is not live'] : []),
    ...(health.store.trouble === null ? [] : ['the store has a problem']),
    ...(health.different === null ? [] : ['the gateways have different files']),
  ]
  if (count === 0 && own.length === 0) return <p class="verdict good">It is well. Nothing needs attention.</p>
  const causes = needs.slice(0, maxCauses).map((group) => {
    const cause = group.place ?? group.title
    return `${formatCount(group.count)} ${group.kind}: ${cutCause(cause)}`
  })
  const rest = needs.length > maxCauses ? `; and ${needs.length - maxCauses} more causes` : ''
  const said = `It is not well: ${[...own, ...causes].join('; ')}${rest}.`.replace(/…\.$/, '…')
  return (
    <p class="verdict bad">
      <Sentence text={said} max={800} />{' '}
      {count > 0 && (
        <Link class="link" to={{ view: 'list', state: 'attention', id: '' }}>
          show them
        </Link>
      )}
    </p>
  )
}
