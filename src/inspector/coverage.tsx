// The coverage of a transform: which code its fixtures run, and which of the learnt payloads its fixtures have. It is measured after a click.
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { CoverageFields, ModuleCoverageFields } from '../model/api/shapes.ts'
import { call } from './api.ts'
import { formatCount, markUnseen } from './format.ts'
import { Example, nameEvent } from './payloads.tsx'
import { toEditorUrl } from './pipe.tsx'
import { useSaid } from './said.ts'
import { Line } from './text.tsx'

type CoverageProps = {
  readonly module: string
  /** The path of the module. Null for a module of the package. */
  readonly file: string | null
  /** Changes when a file is saved: the coverage is then out of date. */
  readonly saved: string
}

export function CoverageView({ module, file, saved }: CoverageProps): JSX.Element {
  const [measured, setMeasured] = useState<CoverageFields>()
  const { said, setSaid, report } = useSaid()
  const section = useRef<HTMLElement>(null)
  useEffect(() => {
    const button = section.current?.querySelector('button')
    // the figures go away, and with them a button that has the focus
    if (section.current?.querySelector('ul :focus') != null) button?.focus()
    setMeasured(undefined)
  }, [module, saved])
  function measure(): void {
    setSaid({ text: 'Running the fixtures …', isBad: false })
    report(call('POST /api/coverage', { query: { module } }).then((found) => (setMeasured(found), '')))
  }
  const coverage = measured?.coverage
  return (
    <section class="part" ref={section} aria-label={`Coverage of ${module}`}>
      <h3>
        Coverage of{' '}
        {file === null ? (
          <Line text={module} max={120} />
        ) : (
          <a href={toEditorUrl(file, 1)}>
            <Line text={module} max={120} />
          </a>
        )}
      </h3>
      <div class="tools">
        <button type="button" onClick={measure}>
          what do its fixtures cover?
        </button>
        <span class={said.isBad ? 'bad' : 'dim'} role="status">
          {markUnseen(said.text)}
        </span>
      </div>
      {measured !== undefined && measured.problem !== null && (
        <p class="problem">
          <Line text={measured.problem} max={1_000} />
        </p>
      )}
      {coverage === null && <p class="note">Neither a fixture nor a kept request runs it.</p>}
      {coverage != null && (
        <>
          <FileCoverage coverage={coverage} root={file?.slice(0, -module.length)} />
          <Uncovered coverage={coverage} report={report} />
        </>
      )}
    </section>
  )
}

/** The covered lines of each file, and the code that fixtures do not run. `root`: the transforms directory, with a slash at its end. */
function FileCoverage({
  coverage: { files },
  root,
}: {
  coverage: ModuleCoverageFields
  root: string | undefined
}): JSX.Element {
  return (
    <ul class="tried" aria-label="Code">
      {files.map(({ file, lines, covered, unreached, onlyKept }) => (
        <li key={file}>
          <b>
            <Line text={file} max={120} />
          </b>{' '}
          {covered} of {lines} lines
          <ul>
            {[
              ...unreached.map((place) => ({ ...place, isKept: false })),
              ...onlyKept.map((place) => ({ ...place, isKept: true })),
            ]
              .toSorted((one, other) => one.line - other.line)
              .map(({ line, text, isKept }, at) => (
                <li key={at}>
                  {root === undefined ? line : <a href={toEditorUrl(`${root}${file}`, line)}>{`${file}:${line}`}</a>}{' '}
                  <span class={isKept ? 'warn' : 'bad'}>{isKept ? 'only kept requests run' : 'nothing runs'}</span>{' '}
                  <Line text={text} max={120} />
                </li>
              ))}
          </ul>
        </li>
      ))}
    </ul>
  )
}

const maxMissing = 12

type UncoveredProps = { readonly coverage: ModuleCoverageFields; readonly report: ReturnType<typeof useSaid>['report'] }

/** `report`: shows a sentence above the figures, because a new fixture removes the figures, which are then out of date. */
function Uncovered({ coverage: { requests, shapes }, report }: UncoveredProps): JSX.Element {
  return (
    <>
      <p>
        {formatCount(requests.covered)} of {formatCount(requests.total)} kept requests run only code that fixtures run
        too.
      </p>
      <ul aria-label="Requests without a fixture">
        {requests.uncovered.map(({ source, event, count, example }) => (
          <li key={example}>
            <Line text={nameEvent(source, event)} max={120} /> <span class="dim">× {formatCount(count)}</span>{' '}
            <Example id={example} hasCode report={report} />
          </li>
        ))}
      </ul>
      <ul aria-label="Payloads in fixtures">
        {shapes.map(({ hook, source, event, fields, covered, missing }) => (
          <li key={`${hook} ${source} ${event}`}>
            <Line text={nameEvent(source, event)} max={120} />{' '}
            <span class={covered < fields ? 'warn' : 'dim'}>
              {formatCount(covered)} of {formatCount(fields)} fields are in fixtures
            </span>
            {missing.length > 0 && ', not: '}
            <code>
              <Line
                text={missing
                  .slice(0, maxMissing)
                  .map(({ path, kinds }) => `${path.slice(0, 80)} (${kinds.join(', ')})`)
                  .join(', ')}
                max={1_000}
              />
            </code>
            {missing.length > maxMissing && ' …'}
          </li>
        ))}
      </ul>
    </>
  )
}
