// Which provider a model name means, and the AI SDK's door to it. Only the configuration counts: no environment variable is read.
import type { LanguageModel } from 'ai'
import type { ModelsConfig, ProviderConfig } from '../../../model/agents-config.ts'
import { cut, nearestOf } from '../../../base/text.ts'
import { toModelName } from '../../../model/permission.ts'
import { toLine } from '../../../pipeline/boundary.ts'
import type { Fetch } from './patient-fetch.ts'

type Kind = ProviderConfig['kind']

/** A provider of the configuration with all that a call needs. */
export type Provider = {
  /** Its name in `models.providers`. */
  readonly name: string
  readonly config: ProviderConfig
  readonly baseUrl: string
}

export type Choice =
  | { readonly ok: true; readonly provider: Provider; readonly model: string }
  | { readonly ok: false; readonly reason: string }

/** Where the hosted ones are. `openai-compatible` is wherever the operator runs it. */
const defaultBaseUrls: Readonly<Record<Kind, string | undefined>> = {
  openai: 'https://api.openai.com/v1',
  anthropic: 'https://api.anthropic.com/v1',
  google: 'https://generativelanguage.googleapis.com/v1beta',
  'openai-compatible': undefined,
}

/** Under which name the AI SDK looks for a kind's options. */
export const optionNames: Readonly<Record<Kind, string>> = {
  openai: 'openai',
  anthropic: 'anthropic',
  google: 'google',
  'openai-compatible': 'openaiCompatible',
}

/** No path, no query: a hook may choose the name, and Google's goes into a URL. */
const modelName = /^[^/\s]+\/(?!.*\.\.)[^\s?#%\\]+$/

/** `<provider>/<model>` is split at the first "/": a model's own name may have more of them. */
export function chooseModel(asked: string | undefined, models: ModelsConfig): Choice {
  if (asked === undefined) return { ok: false, reason: 'No model is named: set agents.defaults.model.' }
  const name = toModelName(asked, models.aliases)
  if (!modelName.test(name)) {
    return { ok: false, reason: `"${toShown(name)}" is no <provider>/<model>, and models.aliases has no such name.` }
  }
  const slash = name.indexOf('/')
  const found = toProvider(name.slice(0, slash), models)
  return found.ok ? { ok: true, provider: found.provider, model: name.slice(slash + 1) } : found
}

/** A name for the operator's eyes: a sender may have chosen it. */
export function toShown(name: string): string {
  return cut(toLine(name.slice(0, 1_000)), 100)
}

type Found = { readonly ok: true; readonly provider: Provider } | { readonly ok: false; readonly reason: string }

/** A provider that can be called, or the key of the configuration that is missing. */
export function toProvider(name: string, { providers }: ModelsConfig): Found {
  const config = Object.hasOwn(providers, name) ? providers[name] : undefined
  if (config === undefined) return { ok: false, reason: toUnknown(name, Object.keys(providers)) }
  const baseUrl = config.baseUrl ?? defaultBaseUrls[config.kind]
  if (baseUrl === undefined) {
    return {
      ok: false,
      reason: `models.providers.${name}.baseUrl is missing: an openai-compatible provider has no other address.`,
    }
  }
  if (config.apiKey === undefined && config.kind !== 'openai-compatible') {
    return {
      ok: false,
      reason: `models.providers.${name}.apiKey is missing: set the key of your ${config.kind} account.`,
    }
  }
  if (config.apiKey !== undefined && !/^[\x21-\x7e]+$/.test(config.apiKey)) {
    return { ok: false, reason: `models.providers.${name}.apiKey has a space or a letter that no key has.` }
  }
  return { ok: true, provider: { name, config, baseUrl } }
}

function toUnknown(name: string, known: readonly string[]): string {
  const asked = toShown(name)
  if (known.length === 0) return `models.providers has no "${asked}"; it is empty. Add models.providers.${asked}.`
  const near = nearestOf(name, known)
  const hint = near === undefined ? '' : ` Did you mean "${near}"?`
  return `models.providers has no "${asked}", only ${known.map((one) => `"${one}"`).join(', ')}.${hint}`
}

/** The packages are loaded at the first use: a gateway without a model starts without them. */
export async function openModel(
  { config, baseUrl }: Provider,
  model: string,
  fetch: Fetch,
): Promise<Exclude<LanguageModel, string>> {
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
      return createOpenAICompatible({ ...settings, name, includeUsage: true }).languageModel(model)
    }
  }
}

/** The headers by which a kind knows who asks. */
export function toKeyHeaders({ kind, apiKey, headers = {} }: ProviderConfig): Record<string, string> {
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
