// The runner that calls a model over HTTP with the AI SDK. It does not retry, because the worker does. It asks again only if the provider refuses
// the form of a verdict.
import type { LanguageModelUsage } from 'ai'
import { defineRunner, type RunIO, type RunnerHost, type RunnerParts, type RunRequest } from '../../define.ts'
import {
  cut,
  firstByteDefaults,
  isJsonObject,
  type JsonObject,
  permanentFailure,
  type ProviderConfig,
  retryableFailure,
  type RunResult,
  type Thinking,
  toLine,
  unavailableFailure,
  type Usage,
  type VerdictForm,
} from './shared/kit.ts'
import { type AnswerForm, readVerdictReply } from './shared/ai/answer.ts'
import { callModel, type ModelReply, parseIncompleteJson, toConversation } from './shared/ai/call.ts'
import { describeCutConnection, isFormRefused, toModelFailure } from './shared/ai/failure.ts'
import {
  chooseModel,
  openModel,
  optionNames,
  probeProviders,
  type Provider,
  toShownName,
} from './shared/ai/providers.ts'
import { limitFetch, limitSilence, type Fetch, keepPlainAnswer } from './shared/ai/fetch.ts'
import { toThinkingOptions } from './shared/ai/thinking.ts'

/**
 * The maximum size of an answer: enough for the longest reply of any model with its reasoning. A stream takes a few hundred bytes for each
 * word.
 */
const maxAnswerBytes = 67_108_864
/** The longest silence between two parts of a stream: a model that reasons may write nothing for minutes. */
const betweenBytesMs = 300_000
/** The maximum size of a reply, the same as for a command. */
const maxReplyBytes = 1_048_576

/** The forms of a reply with a verdict, in the order in which they are tried. Every model can write the verdict in its last line. */
const answerForms = ['structured-output', 'tool-call', 'last-line'] as const satisfies readonly VerdictForm[]

export const aiRunner = defineRunner({
  name: 'ai',
  about: 'Calls a model of `models`.',
  ready: { ai: {} },
  create: createAiRunner,
})

function createAiRunner(_: unknown, { models, fetch, clock: now }: RunnerHost): RunnerParts {
  return {
    async run(request, io) {
      const choice = chooseModel(request.model, models)
      if (!choice.ok) return permanentFailure(choice.reason)
      const { verdicts: words } = request
      const question = { ...choice, request, io, fetch, now }
      if (words === undefined) return (await ask(question, undefined)).result
      let asked = await ask(question, { form: answerForms[0], words })
      for (const form of answerForms.slice(1)) {
        if (!asked.refusesForm) break
        io.log(
          `${choice.provider.name} does not give a verdict in this form. It is asked by ${form.replace('-', ' ')}.`,
        )
        asked = await ask(question, { form, words })
      }
      return asked.result
    },

    probe: (signal) => probeProviders({ models, fetch, signal }),
  }
}

type Question = {
  readonly provider: Provider
  readonly model: string
  readonly request: RunRequest
  readonly io: RunIO
  readonly fetch: Fetch
  readonly now: () => number
}

/** `refusesForm`: the provider refused the call because of the form of the answer. */
type AskResult = { readonly result: RunResult; readonly refusesForm: boolean }

async function ask(question: Question, answer: AnswerForm | undefined): Promise<AskResult> {
  const { provider, model, request, io, fetch, now } = question
  const { signal, log } = io
  const { stream, kind, firstByteSeconds = firstByteDefaults[kind] } = provider.config
  // a reply that is not streamed begins only when it is complete
  const limits = { firstMs: firstByteSeconds * 1_000, betweenMs: betweenBytesMs }
  const watched = stream ? limitSilence(fetch, limits) : { fetch, silence: () => undefined }
  const bounded = limitFetch(watched.fetch, maxAnswerBytes)
  const kept = keepPlainAnswer(bounded.fetch)
  const first = await call(question, answer, { fetch: stream ? kept.fetch : bounded.fetch, stream })
  const again = kept.repeat()
  const plain = again === undefined ? undefined : await call(question, answer, { fetch: again, stream: false })
  if (plain?.kind === 'reply') {
    log(`${provider.name} does not stream its replies. Set models.providers.${provider.name}.stream to false.`)
  }
  const reply = plain?.kind === 'reply' ? plain : first
  if (reply.kind === 'failed') {
    const fail = (result: RunResult): AskResult => ({ result, refusesForm: false })
    if (signal.aborted) return fail(toStoppedFailure(signal))
    if (bounded.isOver()) return fail(toTooLongFailure(provider, maxAnswerBytes))
    const silence = watched.silence()
    if (silence !== undefined) return fail(toSilenceFailure(provider, { silence, firstByteSeconds }))
    const result = toModelFailure(
      reply.thrown,
      { provider, model, thinking: request.thinking, begun: reply.begun },
      now(),
    )
    return { result, refusesForm: answer !== undefined && isFormRefused(reply.thrown) }
  }
  // the log line leaves out the name of the model, which a request may have chosen
  for (const warning of reply.warnings) log(cut(toLine(`${provider.name}: ${warning}`), 300))
  if (reply.finish === 'length') log(`${provider.name}: the reply reached its maximum length and is incomplete.`)
  return { result: await readRunResult(reply, provider, answer), refusesForm: false }
}

async function call(
  { provider, model, request, io: { signal, onText } }: Question,
  answer: AnswerForm | undefined,
  { fetch, stream }: { fetch: Fetch; stream: boolean },
) {
  const options = toProviderOptions({ provider, model }, request.thinking)
  return await callModel(
    {
      model: await openModel(provider, model, fetch),
      system: request.system,
      messages: toConversation(request.history, request.prompt),
      providerOptions: { [optionNames[provider.config.kind]]: options },
      maxOutputTokens: toCallLimit(request.maxOutputTokens, provider.config, options),
      answer,
      signal,
      onText,
    },
    { stream },
  )
}

/**
 * The output limit that the AI SDK gets. `limit` includes the reasoning. For Anthropic, the thinking budget is subtracted, because the SDK adds it
 * to the limit that it gets.
 */
function toCallLimit(
  limit: number | undefined,
  { kind }: ProviderConfig,
  { thinking }: JsonObject,
): number | undefined {
  const budget = kind === 'anthropic' && isJsonObject(thinking) ? thinking['budgetTokens'] : undefined
  return limit === undefined || typeof budget !== 'number' ? limit : Math.max(1, limit - budget)
}

/**
 * The options of a call. OpenAI must not store the run, because Hookloom keeps the transcript. Anthropic's package must request structured
 * output, and not use a tool in its place.
 */
function toProviderOptions(
  { provider: { config }, model }: { provider: Provider; model: string },
  level: Thinking | undefined,
): JsonObject {
  const thinking = level === undefined ? {} : toThinkingOptions({ provider: config, model, level })
  if (config.kind === 'anthropic') return { structuredOutputMode: 'outputFormat', ...thinking }
  return config.kind === 'openai' ? { store: false, ...thinking } : thinking
}

async function readRunResult(
  reply: ModelReply,
  provider: Provider,
  answer: AnswerForm | undefined,
): Promise<RunResult> {
  const text = provider.config.kind === 'openai-compatible' ? removeReasoning(reply.text) : reply.text
  const { toolInput } = reply
  const said =
    answer === undefined ? { text } : await readVerdictReply({ text, toolInput }, answer, parseIncompleteJson)
  const result = judgeReply({ ...reply, text: said.text }, provider)
  if (result.status === 'forwarded') return result
  const verdict = 'verdict' in said && result.status === 'ok' ? { verdict: said.verdict } : {}
  return { ...result, ...toUsageField(reply.usage), ...verdict }
}

function judgeReply({ text: said, finish, model }: ModelReply, { name }: Provider): RunResult {
  if (finish === 'none') return retryableFailure(describeCutConnection(name))
  if (finish === 'error')
    return retryableFailure(`${name} ended its reply with an error. If this continues, look at its log.`)
  if (finish === 'content-filter') {
    return permanentFailure(
      `${name} withheld its reply (finish reason ${finish}). Change what the mapping asks for, or choose another model.`,
    )
  }
  if (said.trim() === '') {
    const detail = `${name} gave an empty reply (finish reason ${finish}). ${describeRemedy(finish)}`
    return finish === 'stop' ? retryableFailure(detail) : permanentFailure(detail)
  }
  if (Buffer.byteLength(said) > maxReplyBytes) return toTooLongFailure({ name }, maxReplyBytes)
  return { status: 'ok', text: said, model: `${name}/${toShownName(model)}` }
}

function describeRemedy(finish: ModelReply['finish']): string {
  if (finish === 'length') return 'It reached its maximum length before it wrote any text: lower the thinking level.'
  if (finish === 'tool-calls') return 'It asked for tools, and this runner has none: say so in the system text.'
  return 'If this continues, choose another model. A model with nothing to report must answer HEARTBEAT_OK.'
}

/** Removes the reasoning from a reply: servers without a field for reasoning put it at the beginning of the text. */
function removeReasoning(text: string): string {
  return text.replace(/^\s*<think>[^]*?<\/think>\s*/, '')
}

function toUsageField({ inputTokens, outputTokens, inputTokenDetails, outputTokenDetails }: LanguageModelUsage): {
  usage?: Usage
} {
  if (inputTokens === undefined && outputTokens === undefined) return {}
  const { cacheReadTokens, cacheWriteTokens } = inputTokenDetails
  const { reasoningTokens } = outputTokenDetails
  return {
    usage: {
      inputTokens: inputTokens ?? 0,
      outputTokens: outputTokens ?? 0,
      ...(cacheReadTokens === undefined ? {} : { cachedInputTokens: cacheReadTokens }),
      ...(cacheWriteTokens === undefined || cacheWriteTokens === 0 ? {} : { cacheWriteTokens }),
      ...(reasoningTokens === undefined ? {} : { reasoningTokens }),
    },
  }
}

function toTooLongFailure({ name }: Pick<Provider, 'name'>, maxBytes: number): RunResult {
  return permanentFailure(
    `${name} answered with more than ${maxBytes / 1_048_576} MB and was stopped. Ask it for less, or choose another model.`,
  )
}

/** A model that sends no first byte counts as unavailable, like one that cannot be reached. */
function toSilenceFailure(
  { name }: Pick<Provider, 'name'>,
  { silence, firstByteSeconds }: { silence: 'no answer' | 'stopped'; firstByteSeconds: number },
): RunResult {
  if (silence === 'stopped')
    return retryableFailure(`${name} sent nothing for ${betweenBytesMs / 1_000} s in the middle of its reply.`)
  const failure = unavailableFailure(
    `${name} sent nothing for ${firstByteSeconds} s. If it only needs longer, raise models.providers.${name}.firstByteSeconds; if it cannot stream, set stream to false.`,
  )
  return { ...failure, mayCost: true }
}

function toStoppedFailure({ reason }: AbortSignal): RunResult {
  return reason instanceof DOMException && reason.name === 'TimeoutError'
    ? {
        status: 'timeout',
        detail: 'The model did not answer in time. Raise timeoutSeconds of the mapping or of the agent.',
      }
    : retryableFailure('The run was stopped before the model had answered.')
}
