// What a save changed: the files side by side with those of the save before it.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { SaveFields } from '../model/api/audit.ts'
import { call } from './api.ts'
import { Diff } from './diff.tsx'
import { formatClock, formatCount } from './format.ts'
import { Link } from './link.tsx'
import { describeException } from './said.ts'
import { Line } from './text.tsx'

/** The files that a save changed, which are read when somebody asks for them. */
export function SaveView({ number }: { number: number }): JSX.Element {
  const [save, setSave] = useState<SaveFields>()
  const [problem, setProblem] = useState('')
  const [isOpen, setOpen] = useState(false)
  useEffect(() => {
    if (!isOpen || save !== undefined) return
    const ended = new AbortController()
    void call('POST /api/audit/{number}/save', { params: { number: String(number) }, signal: ended.signal }).then(
      setSave,
      (error: unknown) => !ended.signal.aborted && setProblem(describeException(error, 'It could not be read.')),
    )
    return () => ended.abort()
  }, [isOpen])
  return (
    <details class="save" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>what it changed</summary>
      {problem !== '' && <p class="dim">{problem}</p>}
      {save !== undefined && <Files save={save} />}
    </details>
  )
}

/** What the save changed for the deliveries that were recent then. */
function describeChange({ what, differ, of, isWhole }: NonNullable<SaveFields['changes']>[number]): string {
  if (of === 0) return `${what}: no delivery was kept to compare.`
  const became = differ === 0 ? 'stayed the same' : 'became different'
  const which = of === 1 ? 'the last delivery' : `${differ === 0 ? '' : `${differ} of `}the last ${of} deliveries`
  return `${what}: ${which} ${became}.${isWhole ? '' : ' Others were not compared in time.'}`
}

function Files({ save: { previousAt, isLast, changes, hidden, files } }: { save: SaveFields }): JSX.Element {
  if (previousAt === null) return <p class="dim">The save before it is no longer remembered.</p>
  return (
    <>
      {changes?.map((change) => (
        <p key={change.what} class={change.differ > 0 ? 'warn' : ''}>
          <Line text={describeChange(change)} max={300} />
        </p>
      ))}
      {isLast && (
        <p>
          <Link class="link" to={{ view: 'replay', hook: '', source: '' }}>
            replay it
          </Link>{' '}
          <span class="dim">compares what became of the kept requests with what becomes of them now</span>
        </p>
      )}
      {files.length === 0 && <p class="dim">No file differs from the save before it.</p>}
      {files.map(({ name, before, after }) => (
        <section key={name} aria-label={name}>
          <h3>
            <Line text={name} max={200} />
          </h3>
          <Diff before={before} after={after} names={[`before, ${formatClock(Date.parse(previousAt))}`, 'after']} />
        </section>
      ))}
      {hidden > 0 && <p class="dim">{formatCount(hidden)} more files changed.</p>}
    </>
  )
}
