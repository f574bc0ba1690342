// The view of a gateway that has received no request yet: where to send a request, and a button that sends one.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { HookFields, HooksFields, TypedRequest } from '../model/api/bench.ts'
import { call } from './api.ts'
import { quoteForShell, toCurl } from './curl.ts'
import { markUnseen } from './format.ts'
import { useHooks } from './hooks.tsx'
import { Link } from './link.tsx'
import { copyText, useSaid } from './said.ts'
import { Line } from './text.tsx'
import { buildPayload } from './typed.ts'

export function Start(): JSX.Element {
  const { hooks, problem } = useHooks('')
  if (problem !== '') return <p class="empty bad">{problem}</p>
  if (hooks === undefined) return <p class="empty">Reading …</p>
  return <FirstSteps all={hooks} />
}

function FirstSteps({ all }: { all: HooksFields }): JSX.Element {
  const { hooks, hooksUrl, dir } = all
  const names = hooks.flatMap(({ name }) => name ?? [])
  const [hook, setHook] = useState(names[0] ?? 'agent')
  const [request, setRequest] = useState<TypedRequest>()
  const { said, report } = useSaid()
  const found = hooks.find(({ name }) => name === hook)
  useEffect(() => {
    const ended = new AbortController()
    void readFirstRequest(hook, found, ended.signal).then(setRequest, () => undefined)
    return () => ended.abort()
  }, [hook])
  const url = `${hooksUrl ?? ''}/${hook}`
  const command = request?.hook === hook ? buildCommand(request, { found, hooksUrl, dir }) : '…'

  async function send(): Promise<string> {
    const { status, body } = await call('POST /api/send', { body: await readFirstRequest(hook, found) })
    if (status >= 400) throw new Error(`The hook answered ${status}: ${body.slice(0, 300)}`)
    return 'It is sent.'
  }

  return (
    <section class="start" aria-label="First steps">
      <h2>No delivery yet</h2>
      <p>Give a sender this URL, or send a request yourself. The request appears here when it arrives.</p>
      <div class="tools">
        <label>
          hook{' '}
          <select value={hook} onChange={({ currentTarget }) => setHook(currentTarget.value)}>
            {names.map((name) => (
              <option key={name} value={name}>
                {markUnseen(name.slice(0, 80))}
              </option>
            ))}
          </select>
        </label>
        <button type="button" class="primary" onClick={() => report(send())}>
          send a test event
        </button>
        <Link class="button" to={{ view: 'hooks', bench: hook, from: '' }}>
          try it on the bench
        </Link>
      </div>
      <p>
        <code class="id">
          <Line text={url} max={400} />
        </code>
      </p>
      <pre tabIndex={0} aria-label="A command that sends a request">
        {markUnseen(command)}
      </pre>
      <div class="tools">
        <button type="button" onClick={() => report(copyText('The command', command))}>
          copy the command
        </button>
        <span class={said.isBad ? 'bad' : 'dim'} role="status">
          {markUnseen(said.text)}
        </span>
      </div>
      <p class="note">
        <code>
          <Line text={`. ${quoteForShell(`${dir}/.env`)}`} max={400} />
        </code>{' '}
        sets <code>HOOKLOOM_TOKEN</code> in a shell. <code>hookloom add preset github</code> adds a sender that signs
        its requests.
      </p>
    </section>
  )
}

/** A request that the hook accepts: a sample of it, or one with the fields that its templates read. */
async function readFirstRequest(
  hook: string,
  found: HookFields | undefined,
  signal?: AbortSignal,
): Promise<TypedRequest> {
  const { samples } = await call('GET /api/samples', { query: { hook }, ...(signal !== undefined && { signal }) })
  const sample = samples.find(({ kind }) => kind !== 'kept')
  if (sample !== undefined && sample.kind !== 'kept') return { ...sample.request, hook }
  const headers = { 'content-type': 'application/json' }
  return { hook, headers, query: {}, body: buildPayload(found?.mappings ?? []) }
}

type CommandParts = Pick<HooksFields, 'hooksUrl' | 'dir'> & { readonly found: HookFields | undefined }

/** JSON on one line: a line break would be escaped in the command. */
function toOneLine(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body))
  } catch {
    return body
  }
}

/** A command for a shell. A request that only its sender can prove is signed by `hookloom send`. */
function buildCommand({ hook, headers, query, body }: TypedRequest, { found, hooksUrl, dir }: CommandParts): string {
  if (found?.proof.token === false) {
    const options = Object.entries(headers).map(([name, value]) => ` --header ${quoteForShell(`${name}: ${value}`)}`)
    return `printf %s ${quoteForShell(toOneLine(body))} |\n  hookloom --config-dir ${quoteForShell(dir)} send ${quoteForShell(hook)} --file -${options.join('')}`
  }
  const search = new URLSearchParams(query).toString()
  const url = search === '' ? '' : `?${search}`
  return toCurl(
    { method: 'POST', url, headers: { 'content-type': 'application/json', ...headers }, body: toOneLine(body) },
    hooksUrl ?? '',
    hook,
  )
}
