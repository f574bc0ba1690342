// All hooks, each with its URL, its proof, its mappings and its last hour. A click on a hook opens its bench.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { HookFields, HooksFields } from '../model/api/bench.ts'
import { call } from './api.ts'
import { BenchView } from './bench.tsx'
import { describeSince, formatCount } from './format.ts'
import { Link } from './link.tsx'
import { toEditorUrl } from './pipe.tsx'
import { go, type PagePlace } from './place.ts'
import { glyphs } from './rows.ts'
import { copyText, describeException, useSaid } from './said.ts'
import { Age, Line, Sentence, useNow } from './text.tsx'

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
      {hooks?.hooks.map((hook) => (
        <HookCard key={hook.name ?? ''} hook={hook} all={hooks} />
      ))}
      {hooks !== undefined && <NewHook />}
    </div>
  )
}

function HookCard({ hook, all }: { hook: HookFields; all: HooksFields }): JSX.Element {
  const { name, isBuiltIn, mappings, lastFailure } = hook
  const { said, report } = useSaid()
  const now = useNow(0)
  const url = `${all.hooksUrl ?? ''}/${name ?? '<any name>'}`
  return (
    <article class="hook-card" aria-label={`Hook ${name ?? 'of any name'}`}>
      <h3>
        {name === null ? (
          'any other name'
        ) : (
          <Link class="link" to={{ bench: name, from: '' }}>
            <Line text={name} max={120} />
          </Link>
        )}{' '}
        <span class="dim">{describeProof(hook)}</span>
      </h3>
      <p class="dim">
        <code>
          <Line text={url} max={400} />
        </code>
      </p>
      {isBuiltIn && <p class="dim">{name === 'wake' ? 'A system event.' : 'An agent turn.'} Built in.</p>}
      {mappings.length > 0 && (
        <ol class="mappings" aria-label="Mappings in order">
          {mappings.map((mapping) => (
            <li key={mapping.id}>
              <b>
                <Line text={mapping.id} max={80} />
              </b>{' '}
              {mapping.conditions !== null && (
                <code class="dim">
                  <Line text={mapping.conditions} max={300} />
                </code>
              )}{' '}
              {mapping.transform === null ? (
                <code>
                  <Line text={mapping.template ?? 'the whole payload'} max={160} />
                </code>
              ) : (
                <a href={toEditorUrl(mapping.transform.file ?? '', 1)}>
                  <Line text={mapping.transform.module} max={120} />
                </a>
              )}
              {mapping.transform?.problem != null && (
                <span class="bad">
                  {' '}
                  <Line text={mapping.transform.problem} max={300} />
                </span>
              )}
              {mapping.transform?.shadow != null && (
                <p class="dim">
                  <Line text={`Shadow: ${mapping.transform.shadow}`} max={300} />
                </p>
              )}
              {mapping.warnings.map((warning) => (
                <p key={warning} class="warn">
                  <Line text={warning} max={400} />
                </p>
              ))}
            </li>
          ))}
        </ol>
      )}
      <p class="dim">{describeHour(hook, all)}</p>
      {lastFailure !== null && (
        <p class="last-failure">
          <span class={`state ${lastFailure.kind}`}>
            <span aria-hidden="true">{glyphs[lastFailure.kind]}</span> {lastFailure.kind}
          </span>{' '}
          <span class="dim">
            <Age at={Date.parse(lastFailure.at)} now={now} />
          </span>{' '}
          <Link class="link" to={{ view: 'list', id: lastFailure.id }}>
            <Sentence text={lastFailure.title} max={200} />
          </Link>
        </p>
      )}
      <div class="tools">
        {name !== null && (
          <>
            <Link class="button" to={{ bench: name, from: '' }}>
              try a request
            </Link>
            <button type="button" onClick={() => report(copyText('The URL', url))}>
              copy the URL
            </button>
            <Link class="button" to={{ view: 'list', hook: name, id: '' }}>
              its deliveries
            </Link>
          </>
        )}
        <span class="dim" role="status">
          {said.text}
        </span>
      </div>
    </article>
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
