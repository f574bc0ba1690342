// Turns the failure of a model into a result: whether and when to retry, and the advice for the operator. The provider's words are matched but
// never repeated, because they may quote the prompt or the key; only its error codes are shown.
import { z } from 'zod'
import { tryParseJson } from '../../../../base/json.ts'
import { readRetryAfterMs, toRetryWait } from '../../../../base/http.ts'
import { findErrorCode, toErrorName } from '../../../../base/exceptions.ts'
import { type RunFailure, permanentFailure, retryableFailure, unavailableFailure } from '../../../../model/runner.ts'
import { type Provider, toShownName } from './providers.ts'

/** `begun`: the provider had accepted the call and begun its reply. */
type ModelCall = {
  readonly provider: Provider
  readonly model: string
  readonly thinking: string | undefined
  readonly begun: boolean
}

/** An error of a provider, with the field names of all providers. */
const ProviderError = z.object({
  code: z.union([z.string(), z.number()]).optional().catch(undefined),
  type: z.string().optional().catch(undefined),
  status: z.string().optional().catch(undefined),
  param: z.string().optional().catch(undefined),
  message: z.string().optional().catch(undefined),
  details: z
    .array(z.looseObject({ reason: z.string(), retryDelay: z.string() }).partial())
    .optional()
    .catch(undefined),
})
type ProviderError = z.infer<typeof ProviderError>

const Wrapped = z.object({ error: ProviderError })

/** The error of a call in the AI SDK, recognised by its shape, so that the package is not loaded for a type. */
const CallError = z.object({
  statusCode: z.number().optional().catch(undefined),
  responseBody: z.string().optional().catch(undefined),
  responseHeaders: z.record(z.string(), z.string()).optional().catch(undefined),
})
type CallError = z.infer<typeof CallError>

/** The status that an error inside a stream means: the stream itself has the status 200. */
const statusOf: Readonly<Record<string, number>> = {
  overloaded_error: 529,
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  insufficient_quota: 429,
  RESOURCE_EXHAUSTED: 429,
  request_too_large: 413,
  model_not_found: 404,
  not_found_error: 404,
  permission_error: 403,
  billing_error: 402,
  authentication_error: 401,
  invalid_api_key: 401,
  context_length_exceeded: 400,
  invalid_request_error: 400,
}

/** The words of OpenAI, Anthropic, Google, Bedrock, xAI, Moonshot, Groq, vLLM, llama.cpp, LM Studio and Ollama for a prompt that is too long. */
const overflow =
  /context[ _-]?(length|window|size|limit)|maximum (context|prompt|model) |(prompt|input) (is )?too long|input token count|input tokens exceed|too many (input )?tokens|model token limit|reduce the length/i
/** OpenAI's error for a single prompt above the token limit of a minute: waiting does not help. */
const requestTooLarge = /request too large/i
const noCredit = /^(insufficient_quota|billing_error|billing_not_active|billing_hard_limit_reached)$/
/** These errors occur only after a connection was made. */
const cutConnectionCodes: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'EPIPE',
  'ECONNABORTED',
  'ERR_STREAM_PREMATURE_CLOSE',
])

export function toModelFailure(thrown: unknown, asked: ModelCall, now: number): RunFailure {
  const code = findErrorCode(thrown)
  if (code !== undefined) return toNetworkFailure(code, asked)
  const answered = CallError.safeParse(thrown).data ?? {}
  const error = readProviderError(thrown, answered)
  const status = findStatus(answered, error)
  if (status === undefined) return toUnexpectedFailure(thrown, asked)
  const retryAfterMs = readRetryAfterMs(new Headers(answered.responseHeaders ?? {}), now) ?? readRetryDelayMs(error)
  return toStatusFailure({ status, error, retryAfterMs }, asked)
}

/** The statuses with which providers and servers refuse a part of a request that they do not support. */
const refusals: ReadonlySet<number> = new Set([400, 404, 422, 500, 501])
/**
 * The words of OpenAI, Anthropic, Google, OpenRouter, DeepSeek, Groq, vLLM, llama.cpp and Ollama for tools and structured output that they do
 * not support.
 */
const aboutForm =
  /\btools?\b|tool[_ ]?(choice|use|call)|function[_ ]?call|response[_ ]?(format|schema|mime)|output[_ ]?(config|format)|json[_ ]?(schema|mode)|structured[_ ]?output|guided|grammar|text\.format/i

/** Whether a provider refuses tools or structured output. Only then is the same question worth another call in another form. */
export function isFormRefused(thrown: unknown): boolean {
  const answered = CallError.safeParse(thrown).data
  return refusals.has(answered?.statusCode ?? 0) && aboutForm.test(answered?.responseBody?.slice(0, 10_000) ?? '')
}

function toNetworkFailure(code: string, { provider: { name, baseUrl } }: ModelCall): RunFailure {
  if (cutConnectionCodes.has(code)) return retryableFailure(describeCutConnection(name, code))
  return unavailableFailure(
    `${name} cannot be reached at ${new URL(baseUrl).host} (${code}). Check that it runs, and check models.providers.${name}.baseUrl.`,
  )
}

export function describeCutConnection(name: string, code?: string): string {
  const why = code === undefined ? '' : ` (${code})`
  return `${name} ended before its reply was complete${why}. If this continues, look at its log, or at a proxy in front of it.`
}

/** The failure if neither the network nor the provider gave a reason. */
function toUnexpectedFailure(thrown: unknown, { provider: { name }, begun }: ModelCall): RunFailure {
  if (begun) return retryableFailure(describeCutConnection(name))
  const error = toErrorName(thrown)
  if (error === 'AI_InvalidArgumentError') {
    return permanentFailure(
      `${name} does not accept the options of the thinking level. Check models.providers.${name}.thinking.`,
    )
  }
  return retryableFailure(
    `${name} answered, but not in the form of this API (${error}). Check models.providers.${name}.baseUrl and kind.`,
  )
}

function toStatusFailure(
  { status, error, retryAfterMs }: { status: number; error: ProviderError; retryAfterMs: number | undefined },
  { provider: { name, baseUrl }, ...asked }: ModelCall,
): RunFailure {
  const model = toShownName(asked.model)
  const wait = toRetryWait(retryAfterMs)
  const said = `(${[status, ...listCodes(error)].join(', ')})`

  if (status === 402 || listCodes(error).some((word) => noCredit.test(word))) {
    return permanentFailure(`${name} says that the account has no credit ${said}. Check its billing.`)
  }
  if (isTooLong(status, error)) {
    return {
      status: 'too-long',
      detail:
        `The prompt is longer than the context of "${model}" ${said}. Choose a model with a longer context, ` +
        'or send less: truncate the values in the template of the mapping, or shorten AGENTS.md and HEARTBEAT.md.',
    }
  }
  if (status === 429) {
    const detail = `${name} limits the rate of calls ${said}. The run waits. A lower agents.defaults.maxConcurrent makes fewer calls at a time.`
    return unavailableFailure(detail, wait)
  }
  if (status === 529) return unavailableFailure(`${name} is overloaded ${said}. The run waits.`, wait)
  if (status === 408 || status === 409 || status >= 500) {
    const failed = asked.begun ? retryableFailure : unavailableFailure
    return failed(`${name} failed ${said}. If this continues, look at its log or its status page.`, wait)
  }
  if (status === 401) return permanentFailure(`${name} refused the key ${said}. Check models.providers.${name}.apiKey.`)
  if (status === 403) {
    return permanentFailure(
      `${name} does not allow "${model}" for this key ${said}. Check models.providers.${name}.apiKey.`,
    )
  }
  if (status === 404) {
    const { host } = new URL(baseUrl)
    return permanentFailure(
      `${name} has no "${model}" at ${host} ${said}. Check the name of the model and models.providers.${name}.baseUrl.`,
    )
  }
  const cause = asked.thinking === undefined ? '' : 'the thinking level and '
  return permanentFailure(`${name} refused the request for "${model}" ${said}. Check ${cause}models.providers.${name}.`)
}

function isTooLong(status: number, { code, type, message }: ProviderError): boolean {
  // "Too many tokens" with 429 is a rate limit of Bedrock
  if (status === 429) return requestTooLarge.test(`${message}`)
  return status === 413 || ([400, 422].includes(status) && overflow.test(`${code} ${type} ${message}`))
}

/** Lists the words of the error, such as the code `model_not_found` or the parameter `reasoning.effort`: each is of a fixed vocabulary. */
function listCodes({ code, type, status, param }: ProviderError): string[] {
  const words = [code, status, type, param].filter((word) => typeof word === 'string')
  return [...new Set(words)].filter((word) => /^[A-Za-z]+([_.][A-Za-z]+)*$/.test(word) && word.length <= 60)
}

/** The error in the body of an answer, or the error inside a stream. */
function readProviderError(thrown: unknown, { responseBody }: CallError): ProviderError {
  const given = thrown instanceof Error ? tryParseJson(responseBody ?? '') : thrown
  // Google wraps its error into a list when it streams
  const first: unknown = Array.isArray(given) ? given[0] : given
  const wrapped = Wrapped.safeParse(first)
  return (wrapped.success ? wrapped.data.error : ProviderError.safeParse(first).data) ?? {}
}

function findStatus({ statusCode }: CallError, error: ProviderError): number | undefined {
  // Google answers a wrong key with 400
  if (error.details?.some(({ reason }) => reason === 'API_KEY_INVALID')) return 401
  if (statusCode !== undefined && statusCode >= 300 && statusCode !== 500) return statusCode
  const meant = [error.code, error.status, error.type].flatMap((word) => readStatusWord(word) ?? [])[0]
  // the AI SDK also uses 500 for an error inside a stream without a status, so a word for a rate limit or an overload decides
  if (statusCode === 500) return meant === 429 || meant === 529 ? meant : 500
  return meant ?? (error.message === undefined ? undefined : 500)
}

function readStatusWord(word: string | number | undefined): number | undefined {
  const number = Number(word)
  if (number >= 400 && number <= 599) return number
  return typeof word === 'string' && Object.hasOwn(statusOf, word) ? statusOf[word] : undefined
}

/** The wait in Google's `RetryInfo`, such as `"retryDelay": "34s"`. */
function readRetryDelayMs({ details = [] }: ProviderError): number | undefined {
  const [, seconds] = details.flatMap(({ retryDelay }) => /^(\d+(?:\.\d+)?)s$/.exec(retryDelay ?? '') ?? [])
  return seconds === undefined ? undefined : Math.ceil(Number(seconds) * 1_000)
}
