// Chooses the provider and the model of a turn, and checks that a provider answers and accepts its key.
import type { wrapLanguageModel } from 'ai'
import type { ModelsConfig, ProviderConfig } from '../../../../model/config/agents.ts'
import { cut, findNearest } from '../../../../base/text.ts'
import { isModelName, resolveModelName } from '../../../../model/config/permission.ts'
import { toLine } from '../../../../boundary/boundary.ts'
import type { Fetch } from './fetch.ts'
import type { Probe } from '../../../../model/channel.ts'
import { findErrorCode } from '../../../../base/exceptions.ts'

type Kind = ProviderConfig['kind']

/** A provider of the configuration with everything that a call needs. */
export type Provider = {
  /** Its name in `models.providers`. */
  readonly name: string
  readonly config: ProviderConfig
  readonly baseUrl: string
}

type ModelChoice =
  | { readonly ok: true; readonly provider: Provider; readonly model: string }
  | { readonly ok: false; readonly reason: string }

/** The URLs of the hosted providers. The operator sets the URL of `openai-compatible`. */
const defaultBaseUrls: Readonly<Record<Kind, string | undefined>> = {
  openai: 'https://api.openai.com/v1',
  anthropic: 'https://api.anthropic.com/v1',
  google: 'https://generativelanguage.googleapis.com/v1beta',
  'openai-compatible': undefined,
}

/** The name under which the AI SDK expects the options of a kind. */
export const optionNames: Readonly<Record<Kind, string>> = {
  openai: 'openai',
  anthropic: 'anthropic',
  google: 'google',
  'openai-compatible': 'openaiCompatible',
}

/** Splits `<provider>/<model>` at the first "/", because the name of a model may contain more. */
export function chooseModel(asked: string | undefined, models: ModelsConfig): ModelChoice {
  if (asked === undefined) return { ok: false, reason: 'No model is set: set agents.defaults.model.' }
  const name = resolveModelName(asked, models.aliases)
  if (!isModelName(name)) {
    return { ok: false, reason: `"${toShownName(name)}" is not <provider>/<model>, and not a name in models.aliases.` }
  }
  const slash = name.indexOf('/')
  const found = findProvider(name.slice(0, slash), models)
  return found.ok ? { ok: true, provider: found.provider, model: name.slice(slash + 1) } : found
}

/** A name in a form that is safe to show, because a sender may have chosen it. */
export function toShownName(name: string): string {
  return cut(toLine(name.slice(0, 1_000)), 100)
}

type ProviderResult =
  | { readonly ok: true; readonly provider: Provider }
  | { readonly ok: false; readonly reason: string }

/** A provider that can be called, or the reason why it cannot, such as a missing API key. */
function findProvider(name: string, { providers }: ModelsConfig): ProviderResult {
  const config = Object.hasOwn(providers, name) ? providers[name] : undefined
  if (config === undefined) return { ok: false, reason: describeUnknownProvider(name, Object.keys(providers)) }
  const baseUrl = config.baseUrl ?? defaultBaseUrls[config.kind]
  if (baseUrl === undefined) {
    return {
      ok: false,
      reason: `models.providers.${name}.baseUrl is missing: an openai-compatible provider has no default.`,
    }
  }
  if (config.apiKey === undefined && config.kind !== 'openai-compatible') {
    return {
      ok: false,
      reason: `models.providers.${name}.apiKey is missing: set the key of your ${config.kind} account.`,
    }
  }
  if (config.apiKey !== undefined && !/^[\x21-\x7e]+$/.test(config.apiKey)) {
    return {
      ok: false,
      reason: `models.providers.${name}.apiKey has a space or another character that a key cannot have.`,
    }
  }
  return { ok: true, provider: { name, config, baseUrl } }
}

function describeUnknownProvider(name: string, known: readonly string[]): string {
  const asked = toShownName(name)
  if (known.length === 0) return `models.providers has no "${asked}"; it is empty. Add models.providers.${asked}.`
  const near = findNearest(name, known)
  const hint = near === undefined ? '' : ` Did you mean "${near}"?`
  return `models.providers has no "${asked}", only ${known.map((one) => `"${one}"`).join(', ')}.${hint}`
}

/** A model that `wrapLanguageModel` of the SDK accepts. */
export type OpenModel = Parameters<typeof wrapLanguageModel>[0]['model']

/** Opens a model. The package of its provider is loaded at the first use, so a gateway without a model loads none. */
export async function openModel({ config, baseUrl }: Provider, model: string, fetch: Fetch): Promise<OpenModel> {
  const settings = {
    baseURL: baseUrl,
    fetch,
    ...(config.apiKey === undefined ? {} : { apiKey: config.apiKey }),
    ...(config.headers === undefined ? {} : { headers: config.headers }),
  }
  switch (config.kind) {
    case 'openai': {
      const { createOpenAI } = await import('@ai-sdk/openai')
      return createOpenAI(settings).languageModel(model)
    }
    case 'anthropic': {
      const { createAnthropic } = await import('@ai-sdk/anthropic')
      return createAnthropic(settings).languageModel(model)
    }
    case 'google': {
      const { createGoogleGenerativeAI } = await import('@ai-sdk/google')
      return createGoogleGenerativeAI(settings).languageModel(model)
    }
    case 'openai-compatible': {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
      const name = optionNames[config.kind]
      return createOpenAICompatible({
        ...settings,
        name,
        includeUsage: true,
        supportsStructuredOutputs: true,
      }).languageModel(model)
    }
  }
}

/** The headers of a request: the API key in the form that the kind of provider expects, and the configured headers. */
function toKeyHeaders({ kind, apiKey, headers = {} }: ProviderConfig): Record<string, string> {
  if (apiKey === undefined) return { ...headers }
  switch (kind) {
    case 'openai':
    case 'openai-compatible':
      return { authorization: `Bearer ${apiKey}`, ...headers }
    case 'anthropic':
      return { 'x-api-key': apiKey, 'anthropic-version': '2023-06-01', ...headers }
    case 'google':
      return { 'x-goog-api-key': apiKey, ...headers }
  }
}

type ProbeParts = { readonly models: ModelsConfig; readonly fetch: Fetch; readonly signal: AbortSignal }

export async function probeProviders({ models, fetch, signal }: ProbeParts): Promise<Probe> {
  const names = Object.keys(models.providers)
  if (names.length === 0)
    return {
      ok: false,
      detail: 'models.providers is empty: there is no model to ask. Add the provider of agents.defaults.model.',
    }
  const probes = await Promise.all(
    names.map(async (name): Promise<Probe> => {
      const found = findProvider(name, models)
      return found.ok ? probeProvider(found.provider, fetch, signal) : { ok: false, detail: found.reason }
    }),
  )
  return { ok: probes.every(({ ok }) => ok), detail: probes.map(({ detail }) => detail).join(' ') }
}

async function probeProvider({ name, config, baseUrl }: Provider, fetch: Fetch, signal: AbortSignal): Promise<Probe> {
  try {
    const answer = await fetch(`${baseUrl}/models`, { headers: toKeyHeaders(config), signal })
    await answer.body?.cancel()
    if (answer.ok) return { ok: true, detail: `${name} answers.` }
    // this request gets 400 from Google only for a wrong key
    const status = config.kind === 'google' && answer.status === 400 ? 401 : answer.status
    return { ok: false, detail: describeRefusal(name, status) }
  } catch (thrown) {
    const why = signal.aborted ? 'no answer in time' : (findErrorCode(thrown) ?? 'no HTTP')
    const { host } = new URL(baseUrl)
    return {
      ok: false,
      detail: `${name} cannot be reached at ${host} (${why}). Check that it runs, and check models.providers.${name}.baseUrl.`,
    }
  }
}

function describeRefusal(name: string, status: number): string {
  if (status === 401 || status === 403)
    return `${name} refused the key (${status}): check models.providers.${name}.apiKey.`
  if (status === 404) {
    return `${name} has no list of models (404): does models.providers.${name}.baseUrl lack its "/v1"?`
  }
  return `${name} answered its list of models with ${status}: check models.providers.${name}.baseUrl, and look at its log.`
}
