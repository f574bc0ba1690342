// The result of a tried request: the decision, the mappings that were tried, the prompts, the log, and the failure.
import type { JSX } from 'preact'
import type { TargetFields, TriedFields } from '../model/api/bench.ts'
import { BeforeAndAfter } from './compared.tsx'
import { formatDuration } from './format.ts'
import { Prompt } from './parts.tsx'
import { CodeFrame, Line, LongText } from './text.tsx'

const words = { accept: 'accepted', skip: 'skipped', park: 'parked', refuse: 'refused' } as const
const marks = { accept: '✓', skip: '–', park: '■', refuse: '⊘' } as const

/** The mappings, in the order in which they were tried. */
export function TriedMappings({ trace }: Pick<TriedFields, 'trace'>): JSX.Element {
  return (
    <ul class="tried" aria-label="Mappings that were tried">
      {trace.map(({ mappingId, matched, why }, at) => (
        <li key={at} class={matched ? 'taken' : 'dim'}>
          <span aria-label={matched ? 'taken' : 'not taken'}>{matched ? '✓' : '·'}</span>{' '}
          <b>
            <Line text={mappingId} max={80} />
          </b>{' '}
          <Line text={why} max={400} />
        </li>
      ))}
    </ul>
  )
}

type TriedProps = {
  readonly tried: TriedFields
  /** The result without the draft. Undefined if there is no draft. */
  readonly before: TriedFields | undefined
}

export function TriedView({ tried, before }: TriedProps): JSX.Element {
  const { decision, isLive, source, event, why, mappingId, trace, log, count, actions, response, problem, tookMs } =
    tried
  const state = decision === 'accept' ? 'done' : words[decision]
  return (
    <>
      <h3 class="decision">
        <span class={`state ${state}`} id="decision">
          <span aria-hidden="true">{marks[decision]}</span> {words[decision]}
        </span>{' '}
        <Line text={mappingId ?? ''} max={80} />{' '}
        <span class="dim">
          <Line text={[source, event].filter((word) => word !== null).join(' ')} max={80} /> {formatDuration(tookMs)}
        </span>
      </h3>
      {!isLive && <p class="warn">A saved file is not live. This is the result of the files on disk.</p>}
      {why !== null && (
        <p>
          <Line text={why} max={1_000} />
        </p>
      )}
      {problem !== null && (
        <section class="problem" aria-label="Problem">
          <p>
            <b>
              {problem.status} {problem.code}
            </b>{' '}
            <Line text={problem.detail} max={2_000} />
          </p>
          {problem.frame !== null && <CodeFrame text={problem.frame} />}
        </section>
      )}
      {before !== undefined && <BeforeAndAfter before={before} after={tried} />}
      {actions.map(({ fields, prompt, targets }, at) => (
        <section class="part" key={at} aria-label={`Action ${at + 1}`}>
          {count > 1 && <h4>Action {at + 1}</h4>}
          {prompt !== null && before === undefined && <Prompt text={prompt} label="Prompt, as the agent reads it" />}
          <Fields fields={fields} targets={targets} isPrompted={prompt !== null} />
        </section>
      ))}
      {count > actions.length && <p class="note">And {count - actions.length} more actions.</p>}
      {trace.length > 0 && <TriedMappings trace={trace} />}
      <TransformLog lines={log} />
      {response !== null && (
        <section class="part" aria-label="Answer to the sender">
          <h4>
            Answer: {response.status} {response.contentType}
          </h4>
          <LongText text={response.body} label="Answer" />
        </section>
      )}
    </>
  )
}

/** The fields that an action has if nobody sets them. */
const defaults: Readonly<Record<string, unknown>> = {
  kind: 'agent',
  mode: 'now',
  wakeMode: 'now',
  deliver: true,
  channel: 'last',
  allowUnsafeExternalContent: false,
  sessionMode: 'isolated',
  sessionKey: 'hook:<new>',
  agentId: 'main',
}

type FieldsProps = {
  readonly fields: object
  readonly targets: readonly TargetFields[]
  /** Whether the prompt is shown, which has the message and the instructions. */
  readonly isPrompted: boolean
}

function Fields({ fields, targets, isPrompted }: FieldsProps): JSX.Element {
  const isShown = ([name, value]: [string, unknown]) =>
    !(isPrompted && (name === 'message' || name === 'instructions')) &&
    defaults[name] !== value &&
    // `targets` has the recipients
    !(targets.length > 0 && ['channel', 'to', 'alsoTo', 'deliver'].includes(name))
  return (
    <dl class="fields">
      {targets.map(({ channel, to, problem }, at) => (
        <>
          <dt key={at}>goes to</dt>
          <dd class={problem === null ? '' : 'warn'}>
            <Line
              text={channel === null ? `nobody. ${problem ?? ''}` : `${nameChannel(channel)} ${to ?? ''}`}
              max={400}
            />
          </dd>
        </>
      ))}
      {Object.entries(fields)
        .filter(isShown)
        .map(([name, value]) => (
          <>
            <dt key={name}>{name}</dt>
            <dd>
              <Line text={typeof value === 'string' ? value : JSON.stringify(value)} max={2_000} />
            </dd>
          </>
        ))}
    </dl>
  )
}

const channelNames: Readonly<Record<string, string>> = {
  github: 'GitHub',
  gitlab: 'GitLab',
  imessage: 'iMessage',
  msteams: 'Teams',
  whatsapp: 'WhatsApp',
}
const nameChannel = (name: string) => channelNames[name] ?? name.charAt(0).toUpperCase() + name.slice(1)

/** The log lines of a transform during its call. */
export function TransformLog({ lines }: { lines: readonly string[] }): JSX.Element | null {
  if (lines.length === 0) return null
  return (
    <ul class="log" aria-label="Log">
      {lines.map((line, at) => (
        <li key={at}>
          <Line text={line} max={1_000} />
        </li>
      ))}
    </ul>
  )
}
