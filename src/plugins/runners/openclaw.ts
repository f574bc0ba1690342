// Uses a running OpenClaw gateway as a runner: it accepts the turn, performs it and delivers its reply. It reports only the acceptance.
import { z } from 'zod'
import { defineRunner, type RunnerHost, type RunnerParts, type RunRequest } from '../../define.ts'
import {
  abortAfter,
  type AgentAction,
  type ChannelName,
  cut,
  hopsHeader,
  httpUrl,
  isJsonObject,
  type JsonObject,
  nonBlank,
  permanentFailure,
  readLimitedBody,
  readRetryAfterMs,
  retryableFailure,
  type RunFailure,
  type RunResult,
  toLine,
  toPrintableLine,
  toRetryWait,
  tryParseJson,
  unavailableFailure,
} from './shared/kit.ts'
import { toNetworkFailure } from './shared/network-failure.ts'

const maxNameChars = 500
/** The maximum number of bytes of an answer, which is a run id or a sentence. */
const maxAnswerBytes = 65_536

/** The channels that OpenClaw has too. */
const knownToOpenClaw = 'last whatsapp telegram discord slack mattermost signal imessage msteams'.split(' ')

function isUnknownToOpenClaw(channel: ChannelName): boolean {
  return !knownToOpenClaw.includes(channel)
}

const options = z.strictObject({
  baseUrl: httpUrl.describe('URL of its hooks, such as http://127.0.0.1:18789/hooks.'),
  token: nonBlank.describe('The hook token of OpenClaw.'),
  timeoutMs: z
    .int()
    .positive()
    .max(60_000)
    .default(15_000)
    .describe('Milliseconds in which OpenClaw must accept a run.'),
})
type Settings = z.infer<typeof options>

export const openclawRunner = defineRunner({
  name: 'openclaw',
  about: 'A running OpenClaw gateway. It performs the turn and delivers the reply.',
  options,
  create: createOpenClawRunner,
})

/**
 * `POST {baseUrl}/agent`, and `/wake` for a heartbeat, with the run id as `Idempotency-Key`: for five minutes, a repeated request does not start
 * a second run. A session key is never sent, because OpenClaw refuses it by default, and the system text is not sent either.
 */
function createOpenClawRunner(config: Settings, { id, fetch }: RunnerHost): RunnerParts {
  async function post(
    path: '/agent' | '/wake',
    { body, run, signal }: { body: JsonObject; run?: Pick<RunRequest, 'runId' | 'hops'>; signal: AbortSignal },
  ): Promise<OpenClawAnswer> {
    const response = await fetch(config.baseUrl + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${config.token}`,
        'content-type': 'application/json',
        ...(run && { 'idempotency-key': run.runId, [hopsHeader]: String(run.hops) }),
      },
      body: JSON.stringify(body),
      // a redirect would send the token to another place, or drop the body
      redirect: 'manual',
      signal: abortAfter(config.timeoutMs, signal),
    })
    return { status: response.status, headers: response.headers, body: await readJson(response) }
  }

  return {
    async run(request, { signal }) {
      const { action, prompt } = request
      const call =
        action === undefined
          ? ({ path: '/wake', body: { text: prompt, mode: 'now' } } as const)
          : ({ path: '/agent', body: buildAgentBody(request, action) } as const)
      let answered: OpenClawAnswer
      try {
        answered = await post(call.path, { body: call.body, run: request, signal })
      } catch (thrown) {
        return toUnanswered(id, config, { thrown, isStopped: signal.aborted })
      }
      return readAcceptance(request, answered) ?? toRefusalFailure(id, config, answered)
    },
    async probe(signal) {
      try {
        // an agent call without a message is refused with 400, but only after the token was accepted
        const answered = await post('/agent', { body: {}, signal })
        if (answered.status === 400) return { ok: true, detail: 'OpenClaw answers and accepts the token.' }
        return { ok: false, detail: toRefusalFailure(id, config, answered).detail }
      } catch (thrown) {
        return { ok: false, detail: toUnanswered(id, config, { thrown, isStopped: signal.aborted }).detail }
      }
    },
  }
}

/** Contains only the fields that the action sets: OpenClaw decides the rest, and it refuses unknown names. */
function buildAgentBody({ prompt, agentId, model }: RunRequest, action: AgentAction): JsonObject {
  const body = {
    message: prompt,
    name: action.name === undefined ? undefined : cut(toLine(action.name), maxNameChars),
    agentId: action.agentId === agentId ? agentId : undefined,
    wakeMode: action.wakeMode,
    deliver: action.deliver && !isUnknownToOpenClaw(action.channel),
    ...findDestination(action),
    model: action.model === undefined ? undefined : model,
    thinking: action.thinking,
    // OpenClaw rounds down, and 0 means no limit
    timeoutSeconds: action.timeoutSeconds === undefined ? undefined : Math.ceil(action.timeoutSeconds),
  }
  return Object.fromEntries(Object.entries(body).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])))
}

/** The channel and the recipient, both or neither: OpenClaw refuses one without the other, and the channel `last`. */
function findDestination({ deliver, channel, to }: AgentAction): { channel: ChannelName; to: string } | undefined {
  if (!deliver || to === undefined || channel === 'last' || isUnknownToOpenClaw(channel)) return undefined
  return { channel, to }
}

/** The result of an accepted run; undefined if OpenClaw did not accept it. */
function readAcceptance({ runId, action }: RunRequest, { status, body }: OpenClawAnswer): RunResult | undefined {
  if ((status !== 200 && status !== 202) || body?.['ok'] !== true) return undefined
  if (action === undefined) return { status: 'forwarded', id: runId, detail: 'Forwarded to OpenClaw as a wake.' }
  const theirs = body['runId']
  if (typeof theirs !== 'string' || theirs === '') return undefined
  return {
    status: 'forwarded',
    id: theirs,
    detail: `Forwarded to OpenClaw as run ${cut(toLine(theirs), 100)}. ${describeReply(action)}`,
  }
}

function describeReply(action: AgentAction): string {
  if (!action.deliver) return 'Its reply is not delivered.'
  if (isUnknownToOpenClaw(action.channel))
    return `Its reply is not delivered: OpenClaw has no channel "${action.channel}".`
  if (findDestination(action) !== undefined) return `OpenClaw delivers the reply to ${action.channel}.`
  return 'OpenClaw decides where the reply goes. To choose, set "to" and a channel other than "last".'
}

/** The body of an answer; undefined if it is too long or not a JSON object. */
async function readJson(response: Response): Promise<JsonObject | undefined> {
  const answer = tryParseJson((await readLimitedBody(response.body, maxAnswerBytes)) ?? '')
  return isJsonObject(answer) ? answer : undefined
}

type OpenClawAnswer = {
  readonly status: number
  readonly headers: Headers
  /** The JSON object in a body; undefined if the body has none. */
  readonly body: JsonObject | undefined
}

const maxWords = 300

/**
 * Statuses of OpenClaw, or of a proxy that does not reach it, for a run that was not accepted. 502 is not among them: a proxy also sends it if the
 * connection breaks after OpenClaw accepted the run.
 */
const unavailableStatuses: ReadonlySet<number> = new Set([429, 503, 521, 523])

/** The advice after a refusal that a retry does not change, by status. */
const remedies: Readonly<Record<number, string>> = {
  400: 'Change what the mapping or the request asks for, or what OpenClaw allows.',
  401: 'Set its token to the hook token of OpenClaw (hooks.token there).',
  403: 'Check the proxy in front of OpenClaw: it refuses this gateway.',
  404: 'Set its baseUrl to the gateway with its hooks path, and hooks.enabled to true in OpenClaw.',
  405: 'Set its baseUrl to the gateway with its hooks path.',
  409: 'Its configuration or the session changed meanwhile. Retry the job when OpenClaw is ready.',
  413: 'The prompt is too long for OpenClaw. Shorten the message of the mapping.',
}

function toRefusalFailure(id: string, { token }: Settings, { status, headers, body }: OpenClawAnswer): RunFailure {
  const said = typeof body?.['error'] === 'string' ? body['error'].replaceAll(token, '[hidden]') : ''
  const words = said === '' ? '' : `: ${cut(toPrintableLine(said), maxWords)}`
  const answered = `OpenClaw (runners.${id}) answered ${status}${words}`
  return { ...toAnswerFailure(id, answered, { status, headers }), quotes: words !== '' }
}

function toAnswerFailure(
  id: string,
  answered: string,
  { status, headers }: Pick<OpenClawAnswer, 'status' | 'headers'>,
): RunFailure {
  const wait = toRetryWait(readRetryAfterMs(headers))
  if (unavailableStatuses.has(status)) return unavailableFailure(`${answered}. The run waits.`, wait)
  if (status >= 500 || status === 408)
    return retryableFailure(`${answered}. If this continues, look at the log of OpenClaw.`, wait)
  if (status === 200 || status === 202) {
    return permanentFailure(
      `${answered}, but the answer is not OpenClaw’s. Set runners.${id}.baseUrl to the gateway with its hooks path.`,
    )
  }
  if (status >= 300 && status < 400) {
    return permanentFailure(`${answered}, a redirect. Set runners.${id}.baseUrl to its target.`)
  }
  const detail = `${answered}. ${remedies[status] ?? 'Check its version and its configuration.'}`
  return status === 413 ? { status: 'too-long', detail } : permanentFailure(detail)
}

/** The failure if there was no answer. A repeat within five minutes is safe: with the same idempotency key, OpenClaw starts no second run. */
function toUnanswered(
  id: string,
  { baseUrl, timeoutMs }: Settings,
  { thrown, isStopped }: { thrown: unknown; isStopped: boolean },
): RunFailure {
  return toNetworkFailure(thrown, {
    who: `OpenClaw at ${toOrigin(baseUrl)} (runners.${id})`,
    timeoutMs,
    isStopped,
    ifLate: `Look at its log, or raise runners.${id}.timeoutMs.`,
    ifUnreachable: 'Is it running?',
  })
}

/** Removes a credential that the URL may contain. */
function toOrigin(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : 'its baseUrl'
}
