// Calls a model once with the AI SDK, streamed or not, and returns the result in the same form.
import type { LanguageModelUsage, TextStreamPart, ToolSet } from 'ai'
import type { JsonObject } from '../../../../base/json.ts'
import type { Message } from '../../../../model/job.ts'
import type { OpenModel } from './providers.ts'
import { type AnswerForm, answerTool, toAnswerSchema } from './answer.ts'

type Call = {
  readonly model: OpenModel
  readonly system: string | undefined
  readonly messages: ChatMessage[]
  /** The options, by the name that the SDK gives the provider. */
  readonly providerOptions: Record<string, JsonObject>
  readonly maxOutputTokens: number | undefined
  /** The form of the answer; undefined if no verdict is requested. */
  readonly answer: AnswerForm | undefined
  readonly signal: AbortSignal
  /** Called with the reply so far. */
  readonly onText?: ((text: string) => void) | undefined
}

export type ModelReply = {
  readonly kind: 'reply'
  readonly text: string
  /** The input that the model passed to the tool for its answer. */
  readonly toolInput: unknown
  /** Why the model stopped: `stop`, `length`, `content-filter` …; `none`: the stream ended without a reason. */
  readonly finish: string
  readonly model: string
  readonly usage: LanguageModelUsage
  /** The parts that the SDK left out of the request, each with the reason. */
  readonly warnings: readonly string[]
}

/** `begun`: the provider had accepted the call and begun its reply. */
type CallFailure = { readonly kind: 'failed'; readonly thrown: unknown; readonly begun: boolean }

type Sdk = typeof import('ai')
type Part = TextStreamPart<ToolSet>
type PartOf<Type extends Part['type']> = Extract<Part, { type: Type }>
type Warning = PartOf<'start-step'>['warnings'][number]

/** Returns a failure of the call as a result. The connection is closed at the end in every case. */
export async function callModel(call: Call, { stream }: { stream: boolean }): Promise<ModelReply | CallFailure> {
  const sdk = await import('ai')
  // the SDK prints its warnings; here they become log lines of the run, unless the host handles them
  globalThis.AI_SDK_LOG_WARNINGS ??= false
  const ended = new AbortController()
  const settings = toCallSettings(sdk, { ...call, signal: AbortSignal.any([call.signal, ended.signal]) })
  try {
    // output that has a form is no text for people
    const onText = call.answer?.form === 'structured-output' ? undefined : call.onText
    return await (stream ? readStream(sdk, settings, onText) : generate(sdk, settings))
  } catch (thrown) {
    return { kind: 'failed', thrown, begun: false }
  } finally {
    ended.abort()
  }
}

function toCallSettings(sdk: Sdk, { model, system, messages, providerOptions, maxOutputTokens, answer, signal }: Call) {
  // no retries: the worker retries, with longer pauses than the SDK
  const limit = maxOutputTokens === undefined ? {} : { maxOutputTokens }
  const always = {
    messages,
    providerOptions,
    abortSignal: signal,
    maxRetries: 0,
    ...limit,
    ...toFormSettings(sdk, model, answer),
  }
  return system === undefined ? always : { ...always, system }
}

/**
 * The settings for a form of answer. The SDK would refuse output that does not match its schema. Here such output may still be a reply, so only
 * the model gets the schema.
 */
function toFormSettings(sdk: Sdk, model: OpenModel, answer: AnswerForm | undefined) {
  if (answer === undefined || answer.form === 'last-line') return { model }
  const schema = toAnswerSchema(answer.words)
  if (answer.form === 'tool-call') {
    const tool = { description: 'Gives the reply and its verdict.', inputSchema: sdk.jsonSchema(schema) }
    return { model, tools: { [answerTool]: tool }, toolChoice: 'required' as const }
  }
  const responseFormat = { type: 'json', schema, name: answerTool } as const
  const middleware: Parameters<typeof sdk.wrapLanguageModel>[0]['middleware'] = {
    specificationVersion: 'v3',
    transformParams: async ({ params }) => ({ ...params, responseFormat }),
  }
  return { model: sdk.wrapLanguageModel({ model, middleware }) }
}

async function generate(sdk: Sdk, settings: ReturnType<typeof toCallSettings>): Promise<ModelReply> {
  const { text, toolCalls, finishReason, response, totalUsage, warnings = [] } = await sdk.generateText(settings)
  return {
    kind: 'reply',
    text,
    toolInput: findToolInput(toolCalls),
    finish: finishReason,
    model: response.modelId,
    usage: totalUsage,
    warnings: warnings.map(describeWarning),
  }
}

async function readStream(
  sdk: Sdk,
  settings: ReturnType<typeof toCallSettings>,
  onText: Call['onText'],
): Promise<ModelReply | CallFailure> {
  let text = ''
  let toolInput: unknown
  let start: PartOf<'start-step'> | undefined
  let step: PartOf<'finish-step'> | undefined
  // without onError the SDK prints an error with the whole request in it
  const { fullStream } = sdk.streamText({ ...settings, onError: () => {} })
  for await (const part of fullStream) {
    if (part.type === 'start-step') start = part
    if (part.type === 'text-delta') {
      text += part.text
      onText?.(text)
    }
    if (part.type === 'tool-call') toolInput ??= findToolInput([part])
    if (part.type === 'finish-step') step = part
    if (part.type === 'error') return { kind: 'failed', thrown: part.error, begun: text !== '' }
  }
  if (step === undefined) return { kind: 'failed', thrown: undefined, begun: true }
  const { finishReason, rawFinishReason, response, usage } = step
  return {
    kind: 'reply',
    text,
    toolInput,
    // `other` without a raw reason is the initial value in the package of a provider: it stays if the stream breaks off
    finish: finishReason === 'other' && rawFinishReason === undefined ? 'none' : finishReason,
    model: response.modelId,
    usage,
    warnings: (start?.warnings ?? []).map(describeWarning),
  }
}

function findToolInput(calls: readonly { readonly toolName: string; readonly input: unknown }[]): unknown {
  return calls.find(({ toolName }) => toolName === answerTool)?.input
}

/** Reads JSON whose end may be missing. */
export async function parseIncompleteJson(text: string): Promise<unknown> {
  const { parsePartialJson } = await import('ai')
  return (await parsePartialJson(text)).value
}

function describeWarning(warning: Warning): string {
  if (warning.type === 'other') return warning.message
  const how = warning.type === 'unsupported' ? 'not' : 'only partly'
  return `"${warning.feature}" is ${how} supported. ${warning.details ?? ''}`.trim()
}

type ChatMessage = { readonly role: 'user' | 'assistant'; readonly content: string }

/**
 * Builds the messages of a call. Roles alternate, and the user begins: the chat templates of several local models, and Google, refuse anything
 * else. A system note in a transcript becomes a user message with a prefix, because only some providers accept a system message there.
 */
export function toConversation(history: readonly Message[], prompt: string): ChatMessage[] {
  const said = history.filter(({ text }) => text.trim() !== '').map(toChatMessage)
  // the beginning of a transcript may be cut off, so the first reply may have no question
  const first = said.findIndex(({ role }) => role === 'user')
  const known = first < 0 ? [] : said.slice(first)
  return [...known, { role: 'user', content: prompt } as const].reduce<ChatMessage[]>(appendMessage, [])
}

function toChatMessage({ role, text }: Message): ChatMessage {
  return role === 'system' ? { role: 'user', content: `System: ${text}` } : { role, content: text }
}

function appendMessage(said: ChatMessage[], next: ChatMessage): ChatMessage[] {
  const last = said.at(-1)
  if (last?.role !== next.role) return [...said, next]
  return [...said.slice(0, -1), { role: last.role, content: `${last.content}\n\n${next.content}` }]
}
