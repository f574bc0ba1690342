// The code of a transform on the bench of its hook, under `hookloom dev`. An unsaved text is a draft: it is tried at once, and saved in the editor.
import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import type { ModuleText } from '../model/api/bench.ts'
import { toEditorUrl } from './pipe.tsx'
import { copyText } from './said.ts'
import type { ReportWork } from './template.tsx'
import { Line } from './text.tsx'
import type { BenchInput } from './typed.ts'

const maxRows = 24

type CodeBoxProps = {
  readonly saved: ModuleText
  /** The path of the module. */
  readonly file: string
  readonly typed: BenchInput
  readonly onChange: (news: Partial<BenchInput>) => void
  readonly report: ReportWork
}

export function CodeBox({
  saved: { module, text },
  file,
  typed: { code },
  onChange,
  report,
}: CodeBoxProps): JSX.Element {
  // a text field has no other line ends
  const saved = text.replaceAll(/\r\n?/g, '\n')
  const draft = code?.module === module ? code.text : undefined
  const isDraft = draft !== undefined && draft !== saved
  // a saved draft is the code of its module
  useEffect(() => {
    if (draft === saved) onChange({ code: undefined })
  }, [saved])

  return (
    <details class="part">
      <summary>
        <h3>
          {isDraft ? 'Draft of' : 'Code of'} <Line text={module} max={120} />
        </h3>
      </summary>
      <textarea
        aria-label={`Code of ${module}`}
        spellcheck={false}
        rows={Math.min(saved.split('\n').length + 1, maxRows)}
        value={draft ?? saved}
        onInput={({ currentTarget: { value } }) =>
          onChange({ code: value === saved ? undefined : { module, text: value } })
        }
      />
      <div class="tools">
        {isDraft && (
          <>
            <button type="button" onClick={() => report(copyText('The code', draft))}>
              copy the code
            </button>
            <button type="button" onClick={() => onChange({ code: undefined })}>
              discard
            </button>
          </>
        )}
        {file !== '' && (
          <a class="link" href={toEditorUrl(file, 1)}>
            open it in the editor
          </a>
        )}
        <span class="dim">A draft is tried at each letter, without effects, and is saved in the editor.</span>
      </div>
    </details>
  )
}
