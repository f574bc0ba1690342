// Runs turns in a Hermes agent: its API server starts a run, and is asked for it until it has ended. Facts: its page, and
// gateway/platforms/api_server_runs.py of NousResearch/hermes-agent, for the status `interrupted` and the error of a run.
import { createHash, randomUUID } from 'node:crypto'
import { z } from 'zod'
import { defineRunner, type RunIO, type RunnerHost, type RunnerParts, type RunRequest } from '../../define.ts'
import {
  cut,
  httpUrl,
  isJsonObject,
  type JsonObject,
  nonBlank,
  permanentFailure,
  retryableFailure,
  type RunFailure,
  type RunResult,
  sleepUntilAborted,
  toPrintableLine,
  tryParseJson,
} from './shared/kit.ts'
import { splitModelName } from './shared/model-name.ts'
import { type ServiceAnswer, type ServiceCall, callElsewhere, toRefusal } from './shared/start-elsewhere.ts'

const timeoutMs = 15_000
/** A reply of 1 MiB, with its escapes. */
const maxBytes = 2_097_152
const firstPauseMs = 250
const maxPauseMs = 2_000
/** Polls in a row without an answer, such as during a restart, after which the attempt ends. The next one finds the run by its key. */
const maxLost = 5
const stopMs = 5_000
const maxWords = 300

const options = z.strictObject({
  token: nonBlank.describe('API_SERVER_KEY of Hermes.'),
  baseUrl: httpUrl
    .default('http://127.0.0.1:8642/v1')
    .describe('Where its API begins. For a profile: http://127.0.0.1:8642/p/<profile>/v1.'),
})

/** A run of Hermes, at its end or before. `id`: Hermes' id of it. */
type TheirRun = { readonly id: string; readonly status: unknown; readonly body: JsonObject }

/** What a session keeps: the id of its session in Hermes, which has the transcript. */
const SessionState = z.object({ hermesSession: z.string() })

function readSession({ state }: RunRequest): string | undefined {
  return SessionState.safeParse(state).data?.hermesSession
}

/** A request that starts a run. `key`: its `Idempotency-Key`, which Hermes keeps for 24 hours. */
const Start = z.object({ key: z.string(), sessionId: z.string(), body: z.custom<JsonObject>(isJsonObject) })
type Start = z.infer<typeof Start>
const keptMs = 86_400_000
/** The maximum size of a value of the store. A larger start is not kept. */
const maxKeptBytes = 1_048_576

const endedStatuses: readonly unknown[] = ['completed', 'failed', 'cancelled', 'interrupted', 'forgotten']

export const hermesRunner = defineRunner({
  name: 'hermes',
  about: 'A Hermes agent. It performs the turn, and its reply is delivered.',
  docs: 'https://hermes-agent.nousresearch.com/docs/user-guide/features/api-server',
  options,
  create: createHermesRunner,
})

/**
 * A start is stored before it is sent: after a kill of the gateway, the next attempt sends the same one, and gets the run that goes on meanwhile.
 * A prompt of its own would not do, because each has other markers around text from outside, and Hermes refuses a key with another body.
 */
function createHermesRunner(
  { token, baseUrl }: z.infer<typeof options>,
  { id, fetch, state, clock }: RunnerHost,
): RunnerParts {
  const who = `Hermes (runners.${id})`
  const refusable = {
    who,
    remedies: {
      401: `Set runners.${id}.token to the API_SERVER_KEY of this Hermes, or of its profile.`,
      404: `Set runners.${id}.baseUrl to its API server, with /v1, and update Hermes if it has no /v1/runs.`,
    },
    waitsFor: [],
  }
  const ifUnreachable = 'Is `hermes gateway` running, with API_SERVER_ENABLED=true?'
  const call = (path: string, rest: Partial<ServiceCall>, signal: AbortSignal) => {
    const headers = { authorization: `Bearer ${token}`, ...rest.headers }
    return callElsewhere(
      { who, url: baseUrl + path, timeoutMs, maxBytes, ifUnreachable, ...rest, headers },
      { fetch, signal },
    )
  }

  /** The start of an earlier attempt, or else a new one. `replaces`: a start whose run gave no reply. */
  async function keepStart(request: RunRequest, replaces: string | undefined): Promise<Start & { isEarlier: boolean }> {
    const kept = await state.read(request.runId)
    const earlier = kept === undefined ? undefined : Start.safeParse(tryParseJson(kept.text)).data
    if (earlier !== undefined && earlier.key !== replaces) return { ...earlier, isEarlier: true }
    const key = randomUUID()
    const sessionId = readSession(request) ?? `hookloom-${key}`
    const start = { key, sessionId, body: buildBody(request, sessionId) }
    const to = { text: JSON.stringify(start), until: clock() + keptMs }
    const isKept =
      Buffer.byteLength(to.text) > maxKeptBytes || (await state.write([{ key: request.runId, from: kept, to }]))
    return isKept ? { ...start, isEarlier: false } : keepStart(request, replaces)
  }

  async function sendStart({ key, body }: Start, { sessionKey }: RunRequest, signal: AbortSignal) {
    const headers = { 'idempotency-key': key, 'x-hermes-session-key': toMemoryKey(sessionKey) }
    const answer = await call('/runs', { headers, body }, signal)
    if (answer.status !== 'answered') return answer
    const theirId = answer.body?.['run_id']
    if (answer.code !== 202 || typeof theirId !== 'string' || !/^[\w-]{1,100}$/.test(theirId))
      return toRefusal(refusable, answer)
    return { status: 'started', theirId } as const
  }

  /** Undefined: no answer that says something about the run, such as from a server that restarts. */
  function readPoll(theirId: string, answer: ServiceAnswer | RunFailure): TheirRun | RunFailure | undefined {
    if (answer.status !== 'answered' || answer.code === 429 || answer.code >= 500) return undefined
    const { code, body } = answer
    if (code === 200 && body !== undefined) return { id: theirId, status: body['status'], body }
    const error = body?.['error']
    const isForgotten = code === 404 && isJsonObject(error) && error['code'] === 'run_not_found'
    return isForgotten ? { id: theirId, status: 'forgotten', body: {} } : toRefusal(refusable, answer)
  }

  async function waitForEnd(theirId: string, { signal, log }: RunIO): Promise<TheirRun | RunFailure> {
    let lost = 0
    let isApprovalLogged = false
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 1.5, maxPauseMs)) {
      const answer = await call(`/runs/${theirId}`, {}, signal)
      if (signal.aborted) return endEarly(theirId, signal)
      const poll = readPoll(theirId, answer)
      if (poll !== undefined && (!('id' in poll) || endedStatuses.includes(poll.status))) return poll
      lost = poll === undefined ? lost + 1 : 0
      if (lost >= maxLost) return answer.status === 'answered' ? toRefusal(refusable, answer) : answer
      if (poll?.status === 'waiting_for_approval' && !isApprovalLogged) {
        isApprovalLogged = true
        log(
          `runners.${id}: the turn waits for an approval: POST /v1/runs/${theirId}/approval to Hermes, with {"choice": "once"} or "deny"`,
        )
      }
      await sleepUntilAborted(pauseMs, signal)
    }
  }

  /** A run that nobody waits for any more is stopped; one that the next attempt takes up goes on. */
  async function endEarly(theirId: string, { reason }: AbortSignal): Promise<RunFailure> {
    const name: unknown = reason instanceof Error ? reason.name : undefined
    if (name !== 'TimeoutError' && name !== 'EndedError')
      return { status: 'timeout', detail: `The gateway stopped waiting for ${who}. The next attempt takes up its run.` }
    const answer = await call(`/runs/${theirId}/stop`, { body: {}, timeoutMs: stopMs }, new AbortController().signal)
    const isStopping = answer.status === 'answered' && answer.code === 200
    const what = name === 'TimeoutError' ? 'The time limit ended the turn' : 'The job was ended'
    return {
      status: 'timeout',
      detail: isStopping
        ? `${what}, and ${who} stops its run.`
        : `${what}, but ${who} did not stop its run ${theirId}.`,
    }
  }

  return {
    usesWorkspace: false,
    async run(request, io) {
      let replaces: string | undefined
      for (;;) {
        const start = await keepStart(request, replaces)
        const started = await sendStart(start, request, io.signal)
        if (started.status !== 'started') return started
        const ended = await waitForEnd(started.theirId, io)
        if (!('id' in ended)) return ended
        const reply = toReply(ended)
        if (reply !== undefined)
          return keepsSession(request) ? { ...reply, state: { hermesSession: start.sessionId } } : reply
        if (!start.isEarlier) return toFailure(who, ended)
        replaces = start.key
      }
    },
    async probe(signal) {
      const answer = await call('/capabilities', { timeoutMs: stopMs }, signal)
      if (answer.status !== 'answered') return { ok: false, detail: answer.detail }
      if (answer.code !== 200) return { ok: false, detail: toRefusal(refusable, answer).detail }
      const features = answer.body?.['features']
      const hasRuns = isJsonObject(features) && features['run_status'] === true
      return hasRuns
        ? { ok: true, detail: 'Hermes answers and accepts the token.' }
        : { ok: false, detail: `${who} answers, but has no runs. Update Hermes.` }
    },
  }
}

/** A session that began with another runner goes on with the messages of the gateway, which Hermes does not have. */
function keepsSession(request: RunRequest): boolean {
  return request.history.length === 0 || readSession(request) !== undefined
}

/** The scope of Hermes' long-term memory: at most 256 characters that a header can have. */
function toMemoryKey(sessionKey: string): string {
  return /^[\x21-\x7e]{1,256}$/.test(sessionKey) ? sessionKey : createHash('sha256').update(sessionKey).digest('hex')
}

function buildBody(request: RunRequest, sessionId: string): JsonObject {
  const { prompt, system, model, thinking, history } = request
  return {
    input: prompt,
    session_id: sessionId,
    ...(system === undefined ? {} : { instructions: system }),
    ...splitModelName(model),
    ...(thinking === undefined ? {} : { model_options: { reasoning_effort: thinking === 'off' ? 'none' : thinking } }),
    ...(keepsSession(request)
      ? {}
      : { conversation_history: history.map(({ role, text }) => ({ role, content: text })) }),
  }
}

/** The result of a run that ended with a reply. */
function toReply({ status, body }: TheirRun): (RunResult & { status: 'ok' }) | undefined {
  const { output, usage, model } = body
  if (status !== 'completed' || typeof output !== 'string' || output.trim() === '') return undefined
  const counts = isJsonObject(usage) ? [usage['input_tokens'], usage['output_tokens']] : []
  const [inputTokens, outputTokens] = counts
    .filter((count) => Number.isSafeInteger(count) && Number(count) >= 0)
    .map(Number)
  return {
    status: 'ok',
    text: output,
    ...(typeof model === 'string' && model !== '' ? { model: cut(toPrintableLine(model), 100) } : {}),
    ...(inputTokens === undefined || outputTokens === undefined ? {} : { usage: { inputTokens, outputTokens } }),
  }
}

function toFailure(who: string, { status, body }: TheirRun): RunFailure {
  if (status === 'completed') return retryableFailure(`${who} ended the turn without a reply.`)
  if (status === 'cancelled') return permanentFailure(`The turn was stopped in ${who}.`)
  if (status === 'interrupted') return retryableFailure(`${who} restarted during the turn.`)
  if (status === 'forgotten') return retryableFailure(`${who} no longer knows the run.`)
  const { error } = body
  if (typeof error !== 'string' || error === '') return retryableFailure(`${who} failed. Look at its log.`)
  return { ...retryableFailure(`${who} failed: ${cut(toPrintableLine(error), maxWords)}`), quotes: true }
}
