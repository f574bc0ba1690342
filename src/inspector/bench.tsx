// The bench of a hook. The left side has a request; the right side shows its decision, updated at each keystroke and each save.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { HookFields, HooksFields, SentFields } from '../model/api/bench.ts'
import { call } from './api.ts'
import { CodeBox } from './code.tsx'
import { toCurl } from './curl.ts'
import { markUnseen } from './format.ts'
import { Link } from './link.tsx'
import { copyText, describeFixture, useSaid } from './said.ts'
import { KeptRequests } from './compared.tsx'
import { TriedView } from './tried.tsx'
import { readDraft, useDraftReport, useTried } from './trying.ts'
import { CoverageView } from './coverage.tsx'
import { Payloads } from './payloads.tsx'
import { SampleMenu, useSamples } from './samples.tsx'
import { Line, Time } from './text.tsx'
import { type ReportWork, TemplateBox } from './template.tsx'
import {
  buildPayload,
  emptyBenchInput,
  keepBenchInput,
  readBenchInput,
  toBenchInput,
  toTypedRequest,
  type BenchInput,
} from './typed.ts'

/** The maximum number of characters of a kept body in the text field. A longer text would slow down the browser. */
const maxBodyChars = 500_000

type BenchProps = {
  readonly hook: string
  /** The kept delivery whose request is loaded at first. Empty if there is none. */
  readonly from: string
  readonly saved: string
  readonly all: HooksFields | undefined
}

export function BenchView({ hook, from, saved, all }: BenchProps): JSX.Element {
  const found = all?.hooks.find(({ name }) => name === hook) ?? all?.hooks.find(({ name }) => name === null)
  const [typed, setTyped] = useState<BenchInput>()
  const { said, report } = useSaid()
  const modules = new Map(
    found?.mappings.flatMap(({ transform }) => (transform === null ? [] : [[transform.module, transform.file]])),
  )
  const { samples, code = [] } = useSamples(hook, saved)
  const draft = typed && readDraft(typed)
  const { tried, problem, wait } = useTried(hook, typed, saved)
  const { tried: before } = useTried(hook, draft && typed && { ...typed, template: undefined, code: undefined }, saved)
  const kept = useDraftReport(hook, problem === '' ? draft : undefined, saved)
  const mappings = found?.mappings ?? []
  const hasTemplate = typed?.template !== undefined || mappings.some((mapping) => mapping.template !== null)

  function change(news: Partial<BenchInput>): void {
    setTyped((before = emptyBenchInput) => {
      const next = { ...before, ...news }
      keepBenchInput(hook, next)
      return next
    })
  }
  function load(id: string): void {
    const loaded = readKept(id).then((request) => (change(request), ''))
    // a request that cannot be edited leaves an empty one, so that another one can be typed
    loaded.catch(() => setTyped((before) => before ?? emptyBenchInput))
    report(loaded)
  }

  useEffect(() => {
    if (from !== '') load(from)
  }, [from])
  useEffect(() => {
    if (typed !== undefined || all === undefined || samples === undefined || from !== '') return
    const [first] = samples
    const kept = readBenchInput(hook)
    if (kept !== undefined) setTyped(kept)
    else if (first !== undefined && first.kind !== 'kept') change(toBenchInput(first.request))
    else if (first !== undefined) load(first.deliveryId)
    // a hook without a mapping gets a draft of a template
    else if (found === undefined) change({ template: 'Look at {{payload}}' })
    else change({ body: buildPayload(found.mappings) })
  }, [all, samples])

  const template = typed !== undefined && all !== undefined && (
    <TemplateBox
      key="template"
      hook={hook}
      mappings={mappings}
      typed={typed}
      canEdit={all.canEdit}
      takenBy={tried?.mappingId ?? null}
      unread={kept.compared?.unread}
      onChange={change}
      report={report}
    />
  )
  const request = (
    <section key="request" class="request" aria-label="Request">
      <div class="tools">
        <SampleMenu
          samples={samples ?? []}
          onChoose={(sample) => {
            if (sample.kind === 'kept') load(sample.deliveryId)
            else change(toBenchInput(sample.request))
          }}
        />
        {typed !== undefined && (
          <Acts hook={hook} hooksUrl={all?.hooksUrl ?? ''} typed={typed} mappings={mappings} report={report} />
        )}
      </div>
      {typed !== undefined &&
        code.map((one) => (
          <CodeBox
            key={one.module}
            saved={one}
            file={modules.get(one.module) ?? ''}
            typed={typed}
            onChange={change}
            report={report}
          />
        ))}
      {typed === undefined ? (
        <p class="empty">Reading …</p>
      ) : (
        <Request typed={typed} isFirst={!hasTemplate} onChange={change} />
      )}
      {!hasTemplate && template}
    </section>
  )
  const isStarting = wait === 'long' && modules.size > 0
  const result = (
    <section key="result" class="result" aria-label="Result" aria-busy={wait !== 'none'}>
      <p class={said.isBad ? 'said bad' : 'said'} role="status">
        {isStarting ? 'A thread for the transform starts …' : markUnseen(said.text)}
      </p>
      {draft !== undefined && problem === '' && <KeptRequests {...kept} />}
      {problem !== '' && (
        <p class="problem">
          <Line text={problem} max={2_000} />
        </p>
      )}
      {tried !== undefined && problem === '' && <TriedView tried={tried} before={draft && before} />}
    </section>
  )

  return (
    <div class="bench" id="view" tabIndex={0} role="region" aria-label="Bench">
      <header class="title">
        <h2>
          <Link class="link" to={{ bench: '', from: '' }}>
            hooks
          </Link>{' '}
          / <Line text={hook} max={120} />
        </h2>
        <code class="id">
          <Line text={`${all?.hooksUrl ?? ''}/${hook}`} max={300} />
        </code>
      </header>
      <div class={hasTemplate ? 'bench-sides has-template' : 'bench-sides'}>
        {hasTemplate ? [template, result, request] : [request, result]}
      </div>
      {found !== undefined && <Payloads hook={hook} hasCode={modules.size > 0} />}
      {[...modules].map(([module, file]) => (
        <CoverageView key={module} module={module} file={file} saved={saved} />
      ))}
    </div>
  )
}

async function readKept(id: string): Promise<ReturnType<typeof toBenchInput>> {
  const request = await call('GET /api/deliveries/{id}/request', { params: { id } })
  if (request.encoding !== 'utf8') throw new Error('The body of this delivery is not text, so it cannot be edited.')
  if (request.body.length > maxBodyChars) throw new Error('The body of this delivery is too long to be edited.')
  return toBenchInput(request)
}

type RequestProps = {
  readonly typed: BenchInput
  /** Whether the body is the first thing that is typed. Otherwise it is folded. */
  readonly isFirst: boolean
  readonly onChange: (news: Partial<BenchInput>) => void
}

function Request({ typed: { body, headers }, isFirst, onChange }: RequestProps): JSX.Element {
  const [isOpen, setOpen] = useState<boolean>()
  const count = headers.split('\n').filter((line) => line.includes(':')).length
  return (
    <>
      <details
        class="part"
        open={isOpen ?? isFirst}
        onToggle={({ currentTarget }) => currentTarget.open !== (isOpen ?? isFirst) && setOpen(currentTarget.open)}
      >
        <summary>
          <h3>Body</h3> <code class="dim">{!(isOpen ?? isFirst) && <Line text={body} max={60} />}</code>
        </summary>
        <textarea
          id="bench-body"
          aria-label="Body of the request"
          spellcheck={false}
          rows={14}
          value={body}
          onInput={({ currentTarget }) => onChange({ body: currentTarget.value })}
        />
      </details>
      <details class="part">
        <summary>
          <h3>Headers, {count}</h3>
        </summary>
        <textarea
          aria-label="Headers, one in a line"
          spellcheck={false}
          rows={6}
          value={headers}
          onInput={({ currentTarget }) => onChange({ headers: currentTarget.value })}
        />
      </details>
    </>
  )
}

type ActsProps = {
  readonly hook: string
  readonly hooksUrl: string
  readonly typed: BenchInput
  readonly mappings: HookFields['mappings']
  readonly report: ReportWork
}

function Acts({ hook, hooksUrl, typed, mappings, report }: ActsProps): JSX.Element {
  const [sent, setSent] = useState<SentFields & { readonly at: string }>()
  const request = toTypedRequest(hook, typed)
  const hasCode = mappings.some(({ transform }) => transform !== null)

  const send = async () => {
    const answer = await call('POST /api/send', { body: request })
    setSent({ ...answer, at: new Date().toISOString() })
    return answer.note ?? ''
  }
  const copy = () => {
    const { headers, query, body } = request
    const search = new URLSearchParams(query).toString()
    const url = search === '' ? '/' : `/?${search}`
    const copied = { method: 'POST', url, headers: { 'content-type': 'application/json', ...headers }, query, body }
    const others = { verifiedBy: null, hasSignedId: false, encoding: 'utf8' } as const
    return copyText('The curl command', toCurl({ ...copied, ...others }, hooksUrl, hook))
  }
  return (
    <>
      <button
        type="button"
        class={readDraft(typed) === undefined ? 'primary' : ''}
        id="send"
        onClick={() => report(send())}
      >
        send it for real
      </button>
      {hasCode && (
        <button type="button" onClick={() => report(describeFixture(call('POST /api/fixtures', { body: request })))}>
          save as fixture
        </button>
      )}
      <button type="button" disabled={request.body.includes('\0')} onClick={() => report(copy())}>
        copy curl
      </button>
      {sent !== undefined && (
        <span role="status">
          <b class={sent.status < 400 ? 'good' : 'bad'}>{sent.status}</b> <Time at={sent.at} />{' '}
          {sent.deliveryId === null ? (
            <Line text={sent.body} max={300} />
          ) : (
            <Link class="link" to={{ view: 'list', id: sent.deliveryId ?? '' }}>
              the delivery
            </Link>
          )}
        </span>
      )}
    </>
  )
}
