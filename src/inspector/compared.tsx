// What the draft on the bench changes: on the request of the bench, before and after beside each other, and on kept requests.
import type { JSX } from 'preact'
import type { DraftReport, TriedFields } from '../model/api/bench.ts'
import { Diff } from './diff.tsx'
import { countRequests, Group } from './group.tsx'
import { listOutside } from './parts.tsx'
import { Line } from './text.tsx'

const names = ['before', 'after'] as const
const maxGroups = 20

/** The texts that the agent, the session or the people get, before and after. */
export function BeforeAndAfter({ before, after }: { before: TriedFields; after: TriedFields }): JSX.Element {
  const count = Math.max(before.actions.length, after.actions.length, 1)
  return (
    <section class="part beside" aria-label="Before and after">
      {Array.from({ length: count }, (_, at) => (
        <Diff key={at} before={describe(before, at)} after={describe(after, at)} names={names} isWhole />
      ))}
    </section>
  )
}

function describe({ decision, why, problem, actions }: TriedFields, at: number): string | undefined {
  if (decision !== 'accept') return at > 0 ? undefined : `${decision}: ${why ?? problem?.detail ?? ''}`
  const { fields = {}, prompt = null } = actions[at] ?? {}
  const texts: Readonly<Record<string, unknown>> = { ...fields }
  const outside = prompt === null ? [] : listOutside(prompt)
  const text: unknown = outside.length > 0 ? outside.join('\n') : (prompt ?? texts['text'] ?? texts['message'])
  return typeof text === 'string' ? text : undefined
}

type KeptProps = { readonly compared: DraftReport | undefined; readonly problem: string; readonly isBusy: boolean }

/** "On the last 50 requests: 48 same, 2 changed", which opens. */
export function KeptRequests({ compared, problem, isBusy }: KeptProps): JSX.Element {
  if (problem !== '') return <Sentence text={problem} isBad />
  if (compared === undefined) return <Sentence text="Trying the kept requests …" />
  const { groups, total, problems } = compared.report
  const sentence = describeReport(compared.report)
  if (groups.length === 0) {
    const [broken] = problems
    return <Sentence text={broken === undefined ? sentence : `${sentence} ${broken.detail}`} isBusy={isBusy} />
  }
  return (
    <details class="part kept">
      <summary aria-busy={isBusy}>
        <h3 class={isBusy ? 'dim' : ''}>
          <Line text={sentence} max={300} />
        </h3>
      </summary>
      {groups.slice(0, maxGroups).map((group) => (
        <Group key={`${group.class} ${group.paths.join()}`} group={group} title={group.class} names={names} />
      ))}
      {groups.length > maxGroups && <p class="note">The rest of {countRequests(total)} is not shown.</p>}
    </details>
  )
}

type SentenceProps = { readonly text: string; readonly isBad?: boolean; readonly isBusy?: boolean }

function Sentence({ text, isBad = false, isBusy = false }: SentenceProps): JSX.Element {
  return (
    <p class={isBad ? 'part bad' : 'part dim'} role="status" aria-busy={isBusy}>
      <Line text={text} max={600} />
    </p>
  )
}

function describeReport({ total, counts, tooLarge, notRun }: DraftReport['report']): string {
  if (total + tooLarge.length + notRun === 0) return 'No request of this hook is kept, so only this one is tried.'
  const classes = Object.entries(counts).flatMap(([name, count]) => (count > 0 ? `${count} ${name}` : []))
  const missing = [
    ...(notRun > 0 ? [`${notRun} not tried in time`] : []),
    ...(tooLarge.length > 0 ? [`${tooLarge.length} too large`] : []),
  ]
  const last = total === 1 ? 'On the last request' : `On the last ${total} requests`
  return `${last}: ${[...classes, ...missing].join(', ')}`
}
