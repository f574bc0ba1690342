// The models and channels, each with its last success, what heartbeats used, and the findings of `hookloom doctor`.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { FindingFields, OutletsFields } from '../model/api/health.ts'
import { call } from './api.ts'
import { formatCount, markUnseen } from './format.ts'
import { Link } from './link.tsx'
import { usePolled } from './polled.ts'
import { describeException } from './said.ts'
import { Table } from './table.tsx'
import { Age, Line, Sentence, useNow } from './text.tsx'

const everyMs = 15_000

/** `version`: when it changes, the models and channels are read again. While the page is visible, they are also read at an interval. */
export function Outlets({ version }: { version: string }): JSX.Element | null {
  const now = useNow(0)
  const found = usePolled((signal) => call('GET /api/outlets', { signal }), { everyMs, version })
  if (found === undefined || found.outlets.length === 0) return null
  const { heartbeats, read, outlets } = found
  return (
    <section aria-label="Models and channels">
      <h2>Models and channels</h2>
      <p class="dim">
        {read === 0
          ? 'No delivery yet.'
          : `Of the last ${read === 1 ? 'delivery' : `${formatCount(read)} deliveries`}.`}
      </p>
      <Table
        label="Table of the models and channels"
        heads={['kind', 'name', 'last success', 'failed', 'last failure']}
      >
        {outlets.map(({ kind, name, lastAt, failed, failedId, error }) => (
          <tr key={`${kind} ${name}`}>
            <td class="dim">{kind}</td>
            <td>
              <Line text={name} max={80} />
            </td>
            <td>{lastAt === null ? <span class="dim">none</span> : <Age at={Date.parse(lastAt)} now={now} />}</td>
            <td class={failed > 0 ? 'bad' : ''}>{formatCount(failed)}</td>
            <td>
              {failedId !== null && (
                <Link class="link" to={{ view: 'list', id: failedId }}>
                  <Sentence text={error ?? ''} max={160} />
                </Link>
              )}
            </td>
          </tr>
        ))}
      </Table>
      <HeartbeatUsage usage={heartbeats} />
    </section>
  )
}

function HeartbeatUsage({ usage }: { usage: OutletsFields['heartbeats'] }): JSX.Element {
  const { turns, uncounted, inputTokens, outputTokens } = usage
  return (
    <p class="dim">
      Heartbeats in the last 24 hours: {formatCount(turns)} {turns === 1 ? 'turn' : 'turns'}
      {turns > uncounted && `, ${formatCount(inputTokens)} tokens in, ${formatCount(outputTokens)} out`}
      {uncounted > 0 && `, ${formatCount(uncounted)} without a count of tokens`}.
    </p>
  )
}

const marks = { failure: ['✕', 'bad'], warning: ['▲', 'warn'], well: ['✓', 'dim'] } as const

/**
 * The findings of `hookloom doctor`, after a click only: the checks load all modules, and ask the channels and runners whether they accept
 * their credentials.
 */
export function Doctor(): JSX.Element {
  const [findings, setFindings] = useState<readonly FindingFields[]>()
  const [said, setSaid] = useState('')
  const [isBusy, setBusy] = useState(false)
  async function runDoctor(): Promise<void> {
    setBusy(true)
    setSaid('Examining …')
    try {
      setFindings((await call('POST /api/doctor')).findings)
      setSaid('')
    } catch (error) {
      setSaid(describeException(error))
    }
    setBusy(false)
  }
  const bad = findings?.filter(({ severity }) => severity !== null) ?? []
  const well = findings?.filter(({ severity }) => severity === null) ?? []
  return (
    <section aria-label="What doctor finds">
      <h2>What doctor finds</h2>
      <div class="tools">
        <button type="button" disabled={isBusy} onClick={() => void runDoctor()}>
          {findings === undefined ? 'run doctor' : 'run doctor again'}
        </button>
        <span class="dim" role="status">
          {markUnseen(said)}
        </span>
      </div>
      {findings !== undefined && bad.length === 0 && <p class="good">It finds nothing wrong.</p>}
      <Findings findings={bad} />
      {well.length > 0 && (
        <details>
          <summary>{formatCount(well.length)} checks passed</summary>
          <Findings findings={well} />
        </details>
      )}
    </section>
  )
}

function Findings({ findings }: { findings: readonly FindingFields[] }): JSX.Element {
  return (
    <ul class="findings">
      {findings.map(({ name, severity, detail }, at) => {
        const [glyph, color] = marks[severity ?? 'well']
        return (
          <li key={at}>
            <b class={color}>
              <span aria-hidden="true">{glyph}</span> <Line text={name} max={80} />
            </b>{' '}
            {detail.split('\n').map((line, index) => (
              <p key={index}>
                <Line text={line} max={600} />
              </p>
            ))}
          </li>
        )
      })}
    </ul>
  )
}
