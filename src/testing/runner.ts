// What a runner promises: its end when it is stopped, its failures, what it shows, its environment and its usage.
import { isDeepStrictEqual } from 'node:util'
import { ModelsConfig } from '../model/config/agents.ts'
import type { Usage } from '../model/job.ts'
import { silentLog } from '../base/log.ts'
import type { RunnerDefinition, RunnerHost, RunRequest, RunResult } from '../model/runner.ts'
import { RunnerResult } from '../plugins/runners/shared/own.ts'
import { createMemoryState } from './memory-state.ts'
import {
  answer,
  breakConnection,
  createStall,
  type Fault,
  listLongTexts,
  replaceFetch,
  retryAfterMs,
  waitFor,
} from './faults.ts'

/** A runner with a model that replies. */
export type RunnerTrial = {
  /** The options of the runner, as in its section. Default: none. */
  readonly options?: object
  /** `models` of the configuration, and the model of the turn. */
  readonly models?: object
  readonly model?: string
  /** The answers of the server. No request leaves the process. */
  respond?(request: Request): Response | Promise<Response>
  /** The tokens that the server or the program reports. The result must have them. */
  readonly usage?: Usage
  /** Of a runner that starts a program: options with which the program never ends. */
  readonly endless?: object
  /** Of a runner that starts a program: options with which the reply lists the environment of the program, `HOOKLOOM_TRIAL` among it. */
  readonly listsEnvironment?: object
}

const prompt = 'How is the tide at the pier, asks zebra-4711?'
/** It is for people: it has no boundary. */
const message = 'An unmarked message of a gull-4711.'
const hidden = 'a-secret-of-the-gateway-4711'
const allowed = 'a-value-for-the-program-4711'
const turnMs = 60_000
/** How long a failed or aborted turn may take to end. A program gets some time. */
const endingMs = 5_000
/** The time until a program has started. */
const startMs = 500

/**
 * The promises that the runner breaks, each as a sentence; an empty list if it keeps all. Replaces `fetch` of the process while it runs, so check
 * one runner after the other.
 */
export async function checkRunner<Options>(
  definition: RunnerDefinition<Options>,
  trial: RunnerTrial = {},
): Promise<string[]> {
  for (const options of [trial.options, trial.endless, trial.listsEnvironment]) {
    const parsed = options && definition.options?.safeParse(options)
    if (parsed?.success === false) return [`The options are invalid: ${parsed.error.message}`]
  }
  const good = await run(definition, trial)
  const { result } = good
  if (result === undefined || (result.status !== 'ok' && result.status !== 'forwarded'))
    return [`A turn that the model answers ${describe(good)}`]
  return [
    ...checkReply(good, trial),
    ...(await checkFaults(definition, trial, good.requests.length)),
    ...(await checkEndless(definition, trial)),
    ...(await checkEnvironment(definition, trial)),
    ...(await checkProbe(definition, trial)),
  ]
}

function checkReply({ result, requests }: Turn, { usage }: RunnerTrial): string[] {
  const broken: string[] = []
  if (requests.length > 0 && !requests.some((sent) => sent.includes(prompt))) broken.push('No request has the prompt.')
  if (requests.some((sent) => sent.includes(message)))
    broken.push('A request has the message, which has no boundary around text from outside.')
  const counted = result?.status === 'ok' ? result.usage : undefined
  if (usage !== undefined && !isDeepStrictEqual(counted, usage))
    broken.push(`The usage is ${JSON.stringify(counted)}, and not ${JSON.stringify(usage)}.`)
  return broken
}

async function checkFaults<Options>(
  definition: RunnerDefinition<Options>,
  trial: RunnerTrial,
  requests: number,
): Promise<string[]> {
  // without a request, nothing can fail
  if (requests === 0) return []
  const secrets = [...listLongTexts(trial.options), ...listKeys(trial.models)]
  const broken: string[] = []
  const check = async (what: string, fault: Fault, isRight: (result: RunResult) => boolean) => {
    const turn = await run(definition, trial, { fault })
    const { result, logged } = turn
    if (result === undefined) {
      // an exception is a failure that is tried again, which is right only for a broken connection
      if (what.startsWith('Answer') || turn.thrown === undefined) broken.push(`${what}: the turn ${describe(turn)}`)
      return
    }
    if (!isRight(result)) broken.push(`${what}: the turn ${describe(turn)}`)
    const detail = 'detail' in result ? result.detail : ''
    if ([detail, ...logged].some((shown) => secrets.some((secret) => shown.includes(secret))))
      broken.push(`${what}: the detail or the log has a secret.`)
    const quoted = 'quotes' in result && result.quotes === true ? logged : [detail, ...logged]
    if (quoted.some((shown) => shown.includes(prompt))) broken.push(`${what}: the detail or the log has the prompt.`)
  }
  // as providers do, the body quotes what was sent
  const body = { error: { message: `Not now: ${prompt} ${secrets.join(' ')}` } }
  await check('Answer 401', answer(401, body), isFailure)
  await check(
    'Answer 429 with Retry-After',
    answer(429, body),
    (result) => mayWait(result) && (!('retryAfterMs' in result) || (result.retryAfterMs ?? 0) >= retryAfterMs),
  )
  await check('Answer 500', answer(500, body), mayWait)
  await check('Connection that breaks after the request', breakConnection, mayWait)
  for (const [what, reason] of [
    ['Turn at its time limit', new DOMException('The time is up.', 'TimeoutError')],
    ['Turn at a stop of the gateway', new DOMException('Stopped.', 'AbortError')],
  ] as const) {
    const stall = createStall()
    const { result, isLate } = await run(definition, trial, { fault: stall.fault, reason })
    if (stall.isIgnored()) broken.push(`${what}: the request goes on, because it does not get the signal of the turn.`)
    if (isLate) broken.push(`${what}: it does not end.`)
    if (result !== undefined && !isFailure(result)) broken.push(`${what}: the turn is ${result.status}.`)
  }
  return broken
}

async function checkEndless<Options>(definition: RunnerDefinition<Options>, trial: RunnerTrial): Promise<string[]> {
  const { endless } = trial
  if (endless === undefined) return []
  const reason = new DOMException('The time is up.', 'TimeoutError')
  const turn = await run(definition, { ...trial, options: endless }, { reason, abortAfterMs: startMs })
  if (turn.isLate) return ['Program at the time limit of its turn: it does not end.']
  return turn.result === undefined || isFailure(turn.result)
    ? []
    : [`Program at the time limit of its turn: the turn is ${turn.result.status}.`]
}

async function checkEnvironment<Options>(definition: RunnerDefinition<Options>, trial: RunnerTrial): Promise<string[]> {
  const { listsEnvironment } = trial
  if (listsEnvironment === undefined) return []
  process.env['HOOKLOOM_TRIAL_HIDDEN'] = hidden
  try {
    const { result } = await run(definition, { ...trial, options: listsEnvironment })
    const text = result?.status === 'ok' ? result.text : ''
    return [
      ...(text.includes(allowed) ? [] : ['The program does not get HOOKLOOM_TRIAL of the environment of the host.']),
      ...(text.includes(hidden) ? ['The program gets the environment of the gateway, with its secrets.'] : []),
    ]
  } finally {
    delete process.env['HOOKLOOM_TRIAL_HIDDEN']
  }
}

async function checkProbe<Options>(definition: RunnerDefinition<Options>, trial: RunnerTrial): Promise<string[]> {
  const sent: string[] = []
  const fetch = createFetch(trial, sent)
  const { probe } = open(definition, trial, fetch)
  if (probe === undefined) return []
  const probed = await replaceFetch(fetch, () => waitFor(probe(AbortSignal.timeout(endingMs)), 2 * endingMs))
  return typeof probed?.ok === 'boolean' && typeof probed.detail === 'string'
    ? []
    : ['probe returns no { ok, detail }, or does not end with its signal.']
}

/** `isLate`: it did not end. `thrown`: its exception. */
type Turn = {
  readonly result: RunResult | undefined
  readonly thrown: unknown
  readonly isLate: boolean
  readonly requests: readonly string[]
  readonly logged: readonly string[]
}

/** Runs one turn with a new runner. `fault`: the answer to every request. `reason`: why the turn is aborted. */
async function run<Options>(
  definition: RunnerDefinition<Options>,
  trial: RunnerTrial,
  { fault, reason, abortAfterMs }: { fault?: Fault; reason?: unknown; abortAfterMs?: number } = {},
): Promise<Turn> {
  const requests: string[] = []
  const logged: string[] = []
  const turn = new AbortController()
  const fetch = createFetch(trial, requests, fault && ((request) => fault(request, () => turn.abort(reason))))
  const request: RunRequest = {
    runId: 'run-1',
    attempt: 1,
    agentId: 'main',
    sessionKey: 'hook:pier',
    model: trial.model,
    thinking: undefined,
    system: 'You are a pilot.',
    workspace: undefined,
    history: [],
    state: undefined,
    prompt,
    message,
    action: undefined,
    hops: 0,
    deadline: Date.now() + turnMs,
  }
  const timer = abortAfterMs === undefined ? undefined : setTimeout(() => turn.abort(reason), abortAfterMs)
  try {
    const runner = open(definition, trial, fetch)
    const io = { signal: turn.signal, log: (line: string) => void logged.push(line) }
    const ended = await replaceFetch(fetch, () =>
      waitFor(
        runner.run(request, io).then((result) => ({ result })),
        fault === undefined && reason === undefined ? turnMs : endingMs,
      ),
    )
    const parsed = RunnerResult.safeParse(ended?.result)
    const result = parsed.success ? ended?.result : undefined
    return { result, thrown: undefined, isLate: ended === undefined, requests, logged }
  } catch (thrown) {
    return { result: undefined, thrown, isLate: false, requests, logged }
  } finally {
    clearTimeout(timer)
  }
}

function open<Options>(definition: RunnerDefinition<Options>, trial: RunnerTrial, fetch: RunnerHost['fetch']) {
  const options = trial.options ?? {}
  const env = { PATH: process.env['PATH'], HOOKLOOM_TRIAL: allowed }
  const models = ModelsConfig.parse(trial.models ?? {})
  // as: a kind without a schema has no options
  const given = (definition.options?.parse(options) ?? options) as Options
  return definition.create(given, {
    id: definition.name,
    models,
    agents: ['main'],
    env,
    fetch,
    fetchPublic: fetch,
    state: createMemoryState(),
    log: silentLog,
    audit() {},
    clock: Date.now,
  })
}

function createFetch({ respond }: RunnerTrial, sent: string[], fault?: (request: Request) => Promise<Response>) {
  return async (input: Request | URL | string, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init)
    const { url, headers } = request
    sent.push([url, JSON.stringify([...headers]), await request.clone().text()].join('\n'))
    if (fault !== undefined) return await fault(request)
    return respond === undefined ? new Response(null, { status: 404 }) : await respond(request)
  }
}

function isFailure({ status }: RunResult): boolean {
  return status !== 'ok' && status !== 'forwarded'
}

/** Whether the run is tried again, or waits. */
function mayWait(result: RunResult): boolean {
  return result.status === 'unavailable' || (result.status === 'error' && result.retryable)
}

function describe({ result, thrown, isLate }: Turn): string {
  if (isLate) return 'does not end.'
  if (thrown !== undefined) return `throws ${String(thrown)}.`
  if (result === undefined) return 'returns no valid result.'
  const again = 'retryable' in result && !result.retryable ? ', and is not tried again' : ''
  return `is ${result.status}${again}: ${'detail' in result ? result.detail : ''}`
}

/** The keys of the providers. */
function listKeys(models: object | undefined): string[] {
  const { providers } = ModelsConfig.parse(models ?? {})
  return Object.values(providers).flatMap(({ apiKey }) => apiKey ?? [])
}
