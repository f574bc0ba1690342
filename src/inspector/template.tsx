// The draft of a template on the bench of a hook. It is tried at once, and saved after a click.
import type { JSX } from 'preact'
import { useRef } from 'preact/hooks'
import type { HookFields } from '../model/api/bench.ts'
import { call } from './api.ts'
import { TemplateField } from './completion.tsx'
import { copyText } from './said.ts'
import { Line } from './text.tsx'
import { PayloadView } from './tree.tsx'
import { type BenchInput, isUnfinished, toTypedRequest } from './typed.ts'

/** Shows the result or the error of some work when it has ended. */
export type ReportWork = (work: Promise<string>) => void

type TemplateBoxProps = {
  readonly hook: string
  readonly mappings: HookFields['mappings']
  readonly typed: BenchInput
  readonly canEdit: boolean
  /** The mapping that takes the request. */
  readonly takenBy: string | null
  readonly onChange: (news: Partial<BenchInput>) => void
  readonly report: ReportWork
}

/** The text field of the draft. A click on a field of the payload inserts its path into the draft. */
export function TemplateBox({
  hook,
  mappings,
  typed,
  canEdit,
  takenBy,
  onChange,
  report,
}: TemplateBoxProps): JSX.Element {
  const { template, mappingId, body } = typed
  const focusLater = (id: string) => requestAnimationFrame(() => document.getElementById(id)?.focus())
  const box = useRef<HTMLTextAreaElement>(null)
  const templateMappings = mappings.filter(({ transform }) => transform === null)
  const chosen = templateMappings.find(({ id }) => id === mappingId)
  const start = templateMappings.find(({ id }) => id === takenBy) ?? templateMappings[0]
  const isSaved = chosen !== undefined && chosen.template === template

  function insert(path: string): void {
    const { current } = box
    if (current === null) return
    current.setRangeText(path, current.selectionStart, current.selectionEnd, 'end')
    onChange({ template: current.value })
    current.focus()
  }
  const save = async () => {
    const made = await call('POST /api/mappings', { body: { hook, template: template ?? '', mappingId } })
    const { file, mappingId: saved, shadowedBy } = made
    onChange({ mappingId: saved })
    const shadow =
      shadowedBy === null ? '' : ` But the mapping "${shadowedBy}" comes first and may take the same requests.`
    return `The mapping "${saved}" is saved in ${file}.${shadow}`
  }
  const makeTransform = async (button: HTMLButtonElement) => {
    const { file } = await call('POST /api/transforms', { body: toTypedRequest(hook, typed) })
    // the new mapping removes the button
    if (document.activeElement === button) focusLater('edit-template')
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
            onChange({ template: start?.template ?? '', mappingId: start?.id })
            focusLater('bench-template')
          }}
        >
          {start === undefined ? 'make a template' : 'change the template'}
        </button>
        {transformButton}
      </div>
    )
  }
  return (
    <section class="draft" aria-label="Template">
      <label for="bench-template">
        template of{' '}
        <b>
          <Line text={chosen?.id ?? 'a new mapping'} max={80} />
        </b>
      </label>
      <TemplateField
        hook={hook}
        mappingId={mappingId}
        value={template}
        box={box}
        onChange={(text) => onChange({ template: text })}
      />
      <div class="tools">
        {canEdit && (chosen === undefined || chosen.isEditable) && (
          <button
            type="button"
            id="save-template"
            disabled={template.trim() === '' || isSaved}
            onClick={() => report(save())}
          >
            {chosen === undefined ? 'add it to hookloom.jsonc' : 'save it in hookloom.jsonc'}
          </button>
        )}
        {transformButton}
        <button type="button" onClick={() => report(copyText('The mapping', renderMapping(hook, template)))}>
          copy the mapping
        </button>
        <button
          type="button"
          onClick={() => {
            onChange({ template: undefined, mappingId: undefined })
            focusLater('edit-template')
          }}
        >
          {isSaved ? 'close' : 'discard'}
        </button>
      </div>
      <p class="note">
        {isUnfinished(template)
          ? 'The placeholder is tried when }} ends it.'
          : 'A path completes after {{, and a click on a field inserts its path.'}
      </p>
      <PayloadView text={body} onCopy={(what, text) => report(copyText(what, text))} onPick={insert} />
    </section>
  )
}

function renderMapping(hook: string, template: string): string {
  return `${JSON.stringify({ match: { path: hook }, messageTemplate: template }, undefined, 2)}\n`
}
