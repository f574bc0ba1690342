// The view of a gateway that has received no request yet: where to send a request, and a button that sends one.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { HooksFields } from '../model/api/bench.ts'
import { call } from './api.ts'
import { markUnseen } from './format.ts'
import { useHooks } from './hooks.tsx'
import { go } from './place.ts'
import { copyText, useSaid } from './said.ts'
import { Line } from './text.tsx'
import { buildPayload } from './typed.ts'

export function Start(): JSX.Element {
  const { hooks, problem } = useHooks('')
  if (problem !== '') return <p class="empty bad">{problem}</p>
  if (hooks === undefined) return <p class="empty">Reading …</p>
  return <FirstSteps all={hooks} />
}

function FirstSteps({ all: { hooks, hooksUrl } }: { all: HooksFields }): JSX.Element {
  const names = hooks.flatMap(({ name }) => name ?? [])
  const [hook, setHook] = useState(names[0] ?? 'agent')
  const { said, report } = useSaid()
  const url = `${hooksUrl ?? ''}/${hook}`
  const curl = [
    `curl -sS --globoff '${url.replaceAll("'", '%27')}' \\`,
    `  -H "Authorization: Bearer $HOOKLOOM_TOKEN" -H 'Content-Type: application/json' \\`,
    `  -d '{"message":"Say hello"}'`,
  ].join('\n')

  async function send(): Promise<string> {
    const { samples } = await call('GET /api/samples', { query: { hook } })
    const sample = samples.find(({ kind }) => kind !== 'kept')
    const mappings = hooks.find(({ name }) => name === hook)?.mappings ?? []
    const typed = { hook, headers: {}, query: {}, body: buildPayload(mappings) }
    const request = sample === undefined || sample.kind === 'kept' ? typed : sample.request
    const { status, body } = await call('POST /api/send', { body: request })
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
        <button type="button" onClick={() => go({ view: 'hooks', bench: hook, from: '' })}>
          try it on the bench
        </button>
      </div>
      <p>
        <code class="id">
          <Line text={url} max={400} />
        </code>
      </p>
      <pre tabIndex={0} aria-label="A command that sends a request">
        {markUnseen(curl)}
      </pre>
      <div class="tools">
        <button type="button" onClick={() => report(copyText('The command', curl))}>
          copy the command
        </button>
        <span class={said.isBad ? 'bad' : 'dim'} role="status">
          {markUnseen(said.text)}
        </span>
      </div>
      <p class="note">
        <code>. ~/.hookloom/.env</code> sets <code>HOOKLOOM_TOKEN</code> in a shell.{' '}
        <code>hookloom add preset github</code> adds a sender that signs its requests.
      </p>
    </section>
  )
}
