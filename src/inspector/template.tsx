// The template of a hook on its bench. An unsaved text is a draft: it is tried at once, and saved after a click.
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { DraftReport, HookFields } from '../model/api/bench.ts'
import type { LearntPaths } from '../model/api/shapes.ts'
import { call } from './api.ts'
import { TemplateField } from './completion.tsx'
import { FieldList } from './fields.tsx'
import { splitByPaths } from './paths.ts'
import { copyText } from './said.ts'
import { Line } from './text.tsx'
import { type BenchInput, isUnfinished, toTypedRequest } from './typed.ts'

/** Shows the result or the error of some work when it has ended. */
export type ReportWork = (work: Promise<string>) => void

const nothingLearnt: LearntPaths = { requests: 0, paths: [] }
const noPaths: DraftReport['unread'] = []

type TemplateBoxProps = {
  readonly hook: string
  readonly mappings: HookFields['mappings']
  readonly typed: BenchInput
  readonly canEdit: boolean
  /** The mapping that takes the request. */
  readonly takenBy: string | null
  /** The paths of the draft that no request has. */
  readonly unread: DraftReport['unread'] | undefined
  readonly onChange: (news: Partial<BenchInput>) => void
  readonly report: ReportWork
}

const focusLater = (id: string) => requestAnimationFrame(() => document.getElementById(id)?.focus())

/** The mapping whose template is shown: the one of the draft, the one that takes the request, or the first one. Undefined: the draft is a new mapping. */
function findShown(mappings: HookFields['mappings'], { template, mappingId }: BenchInput, takenBy: string | null) {
  const own = mappings.filter((mapping) => mapping.template !== null)
  const chosen = own.find(({ id }) => id === mappingId)
  return chosen ?? (template === undefined ? (own.find(({ id }) => id === takenBy) ?? own[0]) : undefined)
}

export function TemplateBox(props: TemplateBoxProps): JSX.Element {
  const { hook, mappings, typed, canEdit, takenBy, onChange, report } = props
  const box = useRef<HTMLTextAreaElement>(null)
  const [learnt, setLearnt] = useState(nothingLearnt)
  const shown = findShown(mappings, typed, takenBy)
  const saved = shown?.template ?? undefined
  const template = typed.template ?? saved
  const isDraft = typed.template !== undefined && typed.template !== saved
  const has = (path: string) => splitByPaths(template ?? '', new Set([path])).length > 1
  const unread = isDraft && props.unread !== undefined ? props.unread.filter(({ path }) => has(path)) : noPaths

  // a saved draft is the template of its mapping
  useEffect(() => {
    if (typed.template !== undefined && typed.template === saved) onChange({ template: undefined })
  }, [saved])

  function readPaths(): void {
    // if the paths cannot be read, the field completes nothing
    void call('GET /api/paths', { query: { hook, mappingId: shown?.id } }).then(setLearnt, () => undefined)
  }
  function change(text: string): void {
    onChange({ template: text === saved ? undefined : text, mappingId: shown?.id })
  }
  function insert(text: string): void {
    const { current } = box
    if (current === null) return
    current.setRangeText(text, current.selectionStart, current.selectionEnd, 'end')
    change(current.value)
    current.focus()
  }
  const save = async () => {
    const made = await call('POST /api/mappings', { body: { hook, template: template ?? '', mappingId: shown?.id } })
    const { file, mappingId, shadowedBy } = made
    onChange({ mappingId })
    const shadow =
      shadowedBy === null ? '' : ` But the mapping "${shadowedBy}" comes first and may take the same requests.`
    return `The mapping "${mappingId}" is saved in ${file}.${shadow}`
  }
  const makeTransform = async (button: HTMLButtonElement) => {
    const { file } = await call('POST /api/transforms', { body: toTypedRequest(hook, typed) })
    // the new mapping removes the button
    if (document.activeElement === button) focusLater('bench-body')
    onChange({ template: undefined, mappingId: undefined })
    return `${file} is made, with its types and its first fixture.`
  }
  const transformButton = canEdit && mappings.every(({ isEditable }) => isEditable) && (
    <button type="button" onClick={({ currentTarget }) => report(makeTransform(currentTarget))}>
      make a transform
    </button>
  )
  if (template === undefined) {
    return (
      <div class="tools">
        <button
          type="button"
          id="edit-template"
          onClick={() => {
            onChange({ template: '', mappingId: undefined })
            focusLater('bench-template')
          }}
        >
          make a template
        </button>
        {transformButton}
      </div>
    )
  }
  return (
    <section class="draft" aria-label="Template">
      <Heading mappings={mappings} shown={shown} isDraft={isDraft} onChange={onChange} />
      <TemplateField
        value={template}
        learnt={learnt}
        unread={new Set(unread.map(({ path }) => path))}
        box={box}
        onFocus={readPaths}
        onChange={change}
      />
      {isDraft ? (
        <Unread unread={unread} template={template} onChange={change} />
      ) : (
        shown?.warnings.map((text) => (
          <p class="warn" key={text}>
            <Line text={text} max={600} />
          </p>
        ))
      )}
      {(isDraft || shown === undefined) && (
        <div class="tools">
          {canEdit && (shown === undefined || shown.isEditable) && (
            <button
              type="button"
              id="save-template"
              class="primary"
              disabled={template.trim() === '' || !isDraft}
              onClick={() => report(save())}
            >
              {shown === undefined ? 'add it to hookloom.jsonc' : 'save it in hookloom.jsonc'}
            </button>
          )}
          <button type="button" onClick={() => report(copyText('The mapping', renderMapping(hook, template)))}>
            copy the mapping
          </button>
          <button
            type="button"
            onClick={() => {
              onChange({ template: undefined, mappingId: undefined })
              focusLater(saved === undefined ? 'edit-template' : 'bench-template')
            }}
          >
            discard
          </button>
          {transformButton}
          <span class="dim">
            {isUnfinished(template) ? 'The placeholder is tried when }} ends it.' : 'A path completes after {{.'}
          </span>
        </div>
      )}
      {!isDraft && shown !== undefined && transformButton && <div class="tools">{transformButton}</div>}
      <FieldList body={typed.body} learnt={learnt} onOpen={readPaths} onPick={insert} />
    </section>
  )
}

type HeadingProps = Pick<TemplateBoxProps, 'mappings' | 'onChange'> & {
  readonly shown: HookFields['mappings'][number] | undefined
  readonly isDraft: boolean
}

/** The name of the mapping, or a choice if several mappings have a template. */
function Heading({ mappings, shown, isDraft, onChange }: HeadingProps): JSX.Element {
  const others = mappings.filter((mapping) => mapping.template !== null)
  if (isDraft || shown === undefined || others.length < 2) {
    return (
      <label for="bench-template">
        {isDraft ? 'Draft of the template of' : 'Template of'}{' '}
        <b>
          <Line text={shown?.id ?? 'a new mapping'} max={80} />
        </b>
      </label>
    )
  }
  return (
    <div>
      <label for="bench-template">Template of </label>
      <select
        aria-label="Mapping"
        value={shown.id}
        onChange={({ currentTarget }) => onChange({ mappingId: currentTarget.value })}
      >
        {others.map(({ id }) => (
          <option key={id} value={id}>
            {id.slice(0, 80)}
          </option>
        ))}
      </select>
    </div>
  )
}

type UnreadProps = {
  readonly unread: DraftReport['unread']
  readonly template: string
  readonly onChange: (template: string) => void
}

/** The paths that no request has, each with the one that was probably meant. */
function Unread({ unread, template, onChange }: UnreadProps): JSX.Element {
  const replace = (path: string, near: string) =>
    onChange(
      splitByPaths(template, new Set([path]))
        .map(({ text, isMarked }) => (isMarked ? near : text))
        .join(''),
    )
  return (
    <div id="unread" role="status">
      {unread.map(({ path, near, text }) => (
        <p class="warn" key={path} title={text}>
          No known request has{' '}
          <code>
            <Line text={path} max={200} />
          </code>
          .{' '}
          {near !== null && (
            <>
              Did you mean{' '}
              <button type="button" class="link" onClick={() => replace(path, near)}>
                <code>
                  <Line text={near} max={200} />
                </code>
              </button>
              ?
            </>
          )}
        </p>
      ))}
    </div>
  )
}

function renderMapping(hook: string, template: string): string {
  return `${JSON.stringify({ match: { path: hook }, messageTemplate: template }, undefined, 2)}\n`
}
