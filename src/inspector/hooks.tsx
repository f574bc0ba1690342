// The hooks as a map: one row a hook, from its senders to its chats, sorted by trouble. A click on a hook opens its bench.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { HookFields, HooksFields } from '../model/api/bench.ts'
import type { SpendingRow } from '../model/api/spending.ts'
import { call } from './api.ts'
import { BenchView } from './bench.tsx'
import { DearestLink, describeCost, sumRows, useSpending } from './costs.tsx'
import { describeSince, formatCount, addUp } from './format.ts'
import { Chain, describeDay, SenderList, sortByTrouble, Troubles } from './hook-map.tsx'
import { Link } from './link.tsx'
import { go, type PagePlace } from './place.ts'
import { Spark } from './spark.tsx'
import { copyText, describeException, useSaid } from './said.ts'
import { Line, useNow } from './text.tsx'

/** Reads the hooks when `version` changes. */
export function useHooks(version: string): { readonly hooks: HooksFields | undefined; readonly problem: string } {
  const [hooks, setHooks] = useState<HooksFields>()
  const [problem, setProblem] = useState('')
  useEffect(() => {
    const ended = new AbortController()
    void read(ended.signal)
    return () => ended.abort()
  }, [version])

  async function read(signal: AbortSignal): Promise<void> {
    try {
      setHooks(await call('GET /api/hooks', { signal }))
      setProblem('')
    } catch (error) {
      if (!signal.aborted) setProblem(describeException(error, 'The hooks could not be read.'))
    }
  }
  return { hooks, problem }
}

type HooksProps = {
  readonly place: PagePlace
  /** Changes when a file is saved, and when another generation becomes live. */
  readonly saved: string
  /** The number of changes of deliveries. */
  readonly changes: number
}

export function Hooks({ place, saved, changes }: HooksProps): JSX.Element {
  const spending = useSpending(0)
  // every tenth change is enough: a busy gateway changes the counts all the time
  const { hooks, problem } = useHooks(`${saved} ${place.bench} ${Math.ceil(changes / 10)}`)
  if (place.bench !== '') {
    return (
      <BenchView key={`${place.bench} ${place.from}`} hook={place.bench} from={place.from} saved={saved} all={hooks} />
    )
  }
  return (
    <div class="hooks" id="view" tabIndex={0} role="region" aria-label="Hooks">
      <h2 class="sr">Hooks</h2>
      {problem !== '' && <p class="empty bad">{problem}</p>}
      {hooks === undefined && problem === '' && <p class="empty">Reading …</p>}
      {hooks !== undefined && (
        <div class="map heads" aria-hidden="true">
          <span>hook and senders</span>
          <span>proof</span>
          <span>mapping → template or code → agent → chat</span>
          <span>last 24 h</span>
          <span>cost today</span>
          <span>needs a person</span>
        </div>
      )}
      {hooks !== undefined &&
        sortByTrouble(hooks.hooks).map((hook) => (
          <HookCard key={hook.name ?? ''} hook={hook} all={hooks} spent={spending?.rows ?? []} />
        ))}
      {hooks !== undefined && <NewHook />}
    </div>
  )
}

type HookCardProps = { hook: HookFields; all: HooksFields; spent: readonly SpendingRow[] }

function HookCard({ hook, all, spent }: HookCardProps): JSX.Element {
  const { name, isBuiltIn, mappings, day } = hook
  const { said, report } = useSaid()
  const now = useNow(0)
  const url = `${all.hooksUrl ?? ''}/${name ?? '<any name>'}`
  return (
    <article class="hook-card" aria-label={`Hook ${name ?? 'of any name'}`}>
      <div class="map">
        <div>
          <h3>
            {name === null ? (
              'any other name'
            ) : (
              <Link class="link" to={{ bench: name, from: '' }} title="Try a request on the bench">
                <Line text={name} max={120} />
              </Link>
            )}
          </h3>
          <SenderList hook={hook} now={now} />
        </div>
        <p class="dim proof">{describeProof(hook)}</p>
        {isBuiltIn ? (
          <p class="dim">{name === 'wake' ? 'A system event.' : 'An agent turn.'} Built in.</p>
        ) : (
          <ol class="mappings" aria-label="Mappings in order">
            {mappings.map((mapping) => (
              <Chain key={mapping.id} mapping={mapping} />
            ))}
          </ol>
        )}
        <div class="day-of-hook">
          <Spark day={day} now={now} />
          <p>
            {name === null || addUp(day.deliveries) === 0 ? (
              describeDay(day, now)
            ) : (
              <Link class="link" to={{ view: 'list', hook: name, id: '' }}>
                {describeDay(day, now)}
              </Link>
            )}
          </p>
        </div>
        <CostToday rows={spent.filter((row) => row.hook === name)} />
        <Troubles hook={hook} now={now} />
      </div>
      <div class="tools">
        <code class="dim">
          <Line text={url} max={400} />
        </code>
        {name !== null && (
          <button type="button" onClick={() => report(copyText('The URL', url))}>
            copy the URL
          </button>
        )}
        <span class="dim">{describeHour(hook, all)}</span>
        <span class="dim" role="status">
          {said.text}
        </span>
      </div>
    </article>
  )
}

/** What the runs of a hook cost today, and the dearest of them. */
function CostToday({ rows }: { rows: readonly SpendingRow[] }): JSX.Element {
  const { dearest, ...sum } = sumRows('', rows)
  return (
    <div class="cost">
      {dearest !== null && (
        <>
          <span>
            {describeCost(sum)}
            <span class="narrow"> today</span>
          </span>{' '}
          <span class="dim">
            dearest <DearestLink run={dearest} />
          </span>
        </>
      )}
    </div>
  )
}

function describeProof({ proof: { token, schemes } }: HookFields): string {
  const proofs = schemes.map((scheme) => `the proof of ${scheme}`)
  return `needs ${[...(token ? ['the hook token'] : []), ...proofs].join(', or ')}`
}

/** Deliveries are counted in the store, the others since the start of the gateway: a shorter time is named. */
function describeHour({ lastHour }: HookFields, { countedSince }: HooksFields): string {
  const { deliveries, parked, duplicates, refused } = lastHour
  const name = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts).flatMap(([word, count]) => (count > 0 ? `${formatCount(count)} ${word}` : []))
  const all =
    deliveries === 0 ? 'no delivery' : `${formatCount(deliveries)} ${deliveries === 1 ? 'delivery' : 'deliveries'}`
  const own = name({ duplicates, refused })
  const ownSince = own.length === 0 ? '' : describeSince(countedSince.others)
  const stored = [all, ...name({ parked }), ...(ownSince === '' ? own : [])]
  const when = describeSince(countedSince.deliveries).replace('s', 'S') || 'In the last hour'
  return `${when}: ${stored.join(', ')}.${ownSince === '' ? '' : ` ${ownSince.replace('s', 'S')}: ${own.join(', ')}.`}`
}

/** Opens the bench of a hook without a mapping. A template that is saved there becomes a mapping. */
function NewHook(): JSX.Element {
  const [name, setName] = useState('')
  return (
    <form
      class="hook-card tools"
      onSubmit={(event) => {
        event.preventDefault()
        if (name.trim() !== '') go({ bench: name.trim(), from: '' })
      }}
    >
      <label>
        a new hook{' '}
        <input
          value={name}
          placeholder="its name"
          spellcheck={false}
          autocomplete="off"
          onInput={({ currentTarget }) => setName(currentTarget.value)}
        />
      </label>
      <button type="submit" disabled={name.trim() === ''}>
        try it
      </button>
    </form>
  )
}
