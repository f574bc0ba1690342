// The runner that calls a model over HTTP with the AI SDK. One request for each run: the worker retries.
import type { LanguageModelUsage } from 'ai'
import type { Thinking } from '../model/action.ts'
import type { ModelsConfig } from '../model/agents-config.ts'
import type { Usage } from '../model/job.ts'
import type { JsonObject } from '../base/json.ts'
import { permanentFailure, retryableFailure, type Runner, type RunResult } from '../model/runner.ts'
import { toLine } from '../boundary/boundary.ts'
import { cut } from '../base/text.ts'
import { callModel, type ModelReply, toConversation } from './ai/call.ts'
import { describeCutConnection, toModelFailure } from './ai/failure.ts'
import { chooseModel, openModel, optionNames, probeProviders, type Provider, toShownName } from './ai/providers.ts'
import { limitFetch, type Fetch, keepPlainAnswer, patientFetch } from './ai/fetch.ts'
import { toThinkingOptions } from './ai/thinking.ts'

/** Enough for the longest reply of any model with its reasoning, at a few hundred bytes of stream for each word. */
const maxAnswerBytes = 67_108_864
/** The same limit as for a command. */
const maxReplyBytes = 1_048_576

type AiRunnerParts = {
  readonly models: ModelsConfig
  /** Replaces the fetch without time limits. */
  readonly fetch?: Fetch
  readonly now?: () => number
}

export function createAiRunner({ models, fetch = patientFetch, now = Date.now }: AiRunnerParts): Runner {
  return {
    id: 'ai',

    async run(request, { signal, log }) {
      const choice = chooseModel(request.model, models)
      if (!choice.ok) return permanentFailure(choice.reason)
      const { provider, model } = choice
      const bounded = limitFetch(fetch, maxAnswerBytes)
      const { stream } = provider.config
      const call = async (through: Fetch, how: { stream: boolean }) =>
        await callModel(
          {
            model: await openModel(provider, model, through),
            system: request.system,
            messages: toConversation(request.history, request.prompt),
            providerOptions: { [optionNames[provider.config.kind]]: toProviderOptions(choice, request.thinking) },
            signal,
          },
          how,
        )
      const kept = keepPlainAnswer(bounded.fetch)
      const first = await call(stream ? kept.fetch : bounded.fetch, { stream })
      const again = kept.repeat()
      const plain = again === undefined ? undefined : await call(again, { stream: false })
      if (plain?.kind === 'reply') {
        log(`${provider.name} does not stream its replies. Set models.providers.${provider.name}.stream to false.`)
      }
      const answer = plain?.kind === 'reply' ? plain : first
      if (answer.kind === 'failed') {
        if (signal.aborted) return toStoppedFailure(signal)
        if (bounded.isOver()) return toTooLongFailure(provider, maxAnswerBytes)
        return toModelFailure(answer.thrown, { provider, model, begun: answer.begun }, now())
      }
      // without the name of the model, which a request may have chosen
      for (const warning of answer.warnings) log(cut(toLine(`${provider.name}: ${warning}`), 300))
      if (answer.finish === 'length') log(`${provider.name}: the reply reached its maximum length and is incomplete.`)
      return toRunResult(answer, provider)
    },

    probe: (signal) => probeProviders({ models, fetch, signal }),
  }
}

/** OpenAI must not store the run, because Hookloom keeps the transcript. */
function toProviderOptions(
  { provider: { config }, model }: { provider: Provider; model: string },
  level: Thinking | undefined,
): JsonObject {
  const thinking = level === undefined ? {} : toThinkingOptions({ provider: config, model, level })
  return config.kind === 'openai' ? { store: false, ...thinking } : thinking
}

function toRunResult({ text, finish, model, usage }: ModelReply, { name, config }: Provider): RunResult {
  if (finish === 'none') return retryableFailure(describeCutConnection(name))
  if (finish === 'error')
    return retryableFailure(`${name} ended its reply with an error. If this continues, look at its log.`)
  if (finish === 'content-filter') {
    return permanentFailure(
      `${name} withheld its reply (finish reason ${finish}). Change what the mapping asks for, or choose another model.`,
    )
  }
  const said = config.kind === 'openai-compatible' ? removeThoughts(text) : text
  if (said.trim() === '') {
    const detail = `${name} gave an empty reply (finish reason ${finish}). ${describeRemedy(finish)}`
    return finish === 'stop' ? retryableFailure(detail) : permanentFailure(detail)
  }
  if (Buffer.byteLength(said) > maxReplyBytes) return toTooLongFailure({ name }, maxReplyBytes)
  return { status: 'ok', text: said, model: `${name}/${toShownName(model)}`, ...toUsage(usage) }
}

function describeRemedy(finish: ModelReply['finish']): string {
  if (finish === 'length') return 'It reached its maximum length before it wrote any text: lower the thinking level.'
  if (finish === 'tool-calls') return 'It asked for tools, and this runner has none: say so in the system text.'
  return 'If this continues, choose another model. A model with nothing to report must answer HEARTBEAT_OK.'
}

/** Servers without a field for reasoning put it before the reply, in its text. */
function removeThoughts(text: string): string {
  return text.replace(/^\s*<think>[^]*?<\/think>\s*/, '')
}

function toUsage({ inputTokens, outputTokens, inputTokenDetails, outputTokenDetails }: LanguageModelUsage): {
  usage?: Usage
} {
  if (inputTokens === undefined && outputTokens === undefined) return {}
  const { cacheReadTokens } = inputTokenDetails
  const { reasoningTokens } = outputTokenDetails
  return {
    usage: {
      inputTokens: inputTokens ?? 0,
      outputTokens: outputTokens ?? 0,
      ...(cacheReadTokens === undefined ? {} : { cachedInputTokens: cacheReadTokens }),
      ...(reasoningTokens === undefined ? {} : { reasoningTokens }),
    },
  }
}

function toTooLongFailure({ name }: Pick<Provider, 'name'>, maxBytes: number): RunResult {
  return permanentFailure(
    `${name} answered with more than ${maxBytes / 1_048_576} MB and was stopped. Ask it for less, or choose another model.`,
  )
}

function toStoppedFailure({ reason }: AbortSignal): RunResult {
  return reason instanceof DOMException && reason.name === 'TimeoutError'
    ? {
        status: 'timeout',
        detail: 'The model did not answer in time. Raise timeoutSeconds of the mapping or of the agent.',
      }
    : retryableFailure('The run was stopped before the model had answered.')
}
