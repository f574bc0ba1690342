// Converts the agents and the models of an openclaw.json.
import { join } from 'node:path'
import { isJsonObject, type JsonValue } from '../../base/json.ts'
import { copyKeys, type Fields, moveSecret, moveSecretValue, type Tools } from './draft.ts'
import { noteUnusedKeys, openSection, type Section, toVariableName } from './notes.ts'

/** `ids.listed`: the agents that a mapping may name. */
type Agents = {
  readonly config: { readonly agents: Fields; readonly models: Fields }
  readonly ids: { readonly listed: readonly string[]; readonly default: string }
}

/** `named`: the models that hooks name. The providers of these models are imported too. */
export function convertAgents(file: Section, tools: Tools, named: readonly string[]): Agents {
  const { notes } = tools
  const agents = file.open('agents')
  const defaults = agents.open('defaults')
  const models = openModels(file, defaults, tools)
  const limits = copyKeys(defaults, ['maxConcurrent'])
  const allow = defaults.open('modelPolicy').take('allow')
  const shared: Fields = { ...convertAgent(defaults, tools, models), ...limits }
  for (const name of named) models.resolve(name)
  const allowed = Array.isArray(allow) ? allow.filter((model) => typeof model === 'string') : []
  if (allowed.some((model) => model.includes('*'))) {
    notes.add([...defaults.path, 'modelPolicy', 'allow'], 'has wildcards. List the models in agents.defaults.models.')
  } else if (allowed.length > 0) {
    shared['models'] = allowed.filter((model) => models.resolve(model) !== undefined)
  }
  const list = listAgents(agents).map((agent) => ({
    ...copyKeys(agent, ['id', 'default']),
    ...convertAgent(agent, tools, models),
  }))
  noteUnusedKeys(notes, agents)
  const ids: Fields[] = list
  const listed = ids.map(({ id }) => String(id).trim())
  const first = ids.find((agent) => agent['default'] === true) ?? ids[0]
  return {
    config: {
      models: models.buildSection(),
      agents: { defaults: shared, ...(list.length === 0 ? {} : { list }) },
    },
    ids: { listed: listed.length === 0 ? ['main'] : listed, default: String(first?.['id'] ?? 'main').trim() },
  }
}

/** The agents from `agents.list`, or from `agents.entries`, where the ids are the keys. */
function listAgents(agents: Section): Section[] {
  const list = agents.take('list')
  const entries = agents.take('entries')
  if (isJsonObject(entries)) {
    return Object.entries(entries).map(([id, entry]) =>
      openSection([...agents.path, 'entries', id], { id, ...(isJsonObject(entry) ? entry : {}) }),
    )
  }
  const all = Array.isArray(list) ? list : []
  return all.map((entry, index) => openSection([...agents.path, 'list', index], entry))
}

function convertAgent(section: Section, tools: Tools, models: Models): Fields {
  const { notes, home } = tools
  const agent: Fields = copyKeys(section, ['timeoutSeconds'])
  const thinking = section.take('thinkingDefault')
  if (typeof thinking === 'string') agent['thinking'] = thinking
  const given = section.take('model')
  const [model, fallbacks] = isJsonObject(given) ? [given['primary'], given['fallbacks']] : [given, undefined]
  if (typeof model === 'string' && model.trim() !== '') {
    const known = models.resolve(model)
    if (known !== undefined) agent['model'] = known
    else notes.add([...section.path, 'model'], `names a model whose provider is not known. ${models.next}`)
  }
  if (Array.isArray(fallbacks) && agent['model'] !== undefined) {
    const named = fallbacks.flatMap((name) => (typeof name === 'string' ? [models.resolve(name)] : []))
    const others = named.filter((name) => name !== undefined)
    if (others.length > 0) agent['modelFallbacks'] = others.slice(0, 10)
    if (others.length < fallbacks.length || others.length > 10) {
      notes.add(
        [...section.path, 'model', 'fallbacks'],
        `names models whose provider is not known, or more than ten. ${models.next}`,
      )
    }
  }
  const workspace = section.take('workspace')
  if (typeof workspace === 'string' && /^[~/]/.test(workspace)) {
    agent['workspace'] = workspace.startsWith('~') ? join(home, workspace.slice(1)) : workspace
  } else if (workspace !== undefined) {
    notes.add([...section.path, 'workspace'], 'is not an absolute path. Set it to one.')
  }
  if (section.has('heartbeat')) agent['heartbeat'] = convertHeartbeat(section.open('heartbeat'), tools)
  noteUnusedKeys(notes, section)
  return agent
}

function convertHeartbeat(section: Section, tools: Tools): Fields {
  const heartbeat = copyKeys(section, ['every', 'prompt', 'ackMaxChars'])
  if (section.has('activeHours')) {
    const hours = section.open('activeHours')
    const zone = hours.take('timezone')
    // "user" and "local" of OpenClaw name no time zone
    const timezone = typeof zone === 'string' && zone.includes('/') ? { timezone: zone } : {}
    heartbeat['activeHours'] = { ...copyKeys(hours, ['start', 'end']), ...timezone }
  }
  noteUnusedKeys(tools.notes, section)
  return heartbeat
}

type Models = {
  /** The name of the model in Hookloom. Undefined if its provider is unknown. Adds a known provider to the section. */
  resolve(name: string): string | undefined
  readonly next: string
  /** The section `models`: the configured providers, and the known ones that a model needs. */
  buildSection(): Fields
}

/** The `kind` of a provider in Hookloom, by its `api` in OpenClaw. */
const kinds: Readonly<Record<string, string>> = {
  'openai-completions': 'openai-compatible',
  'openai-responses': 'openai',
  'anthropic-messages': 'anthropic',
  'google-generative-ai': 'google',
  ollama: 'openai-compatible',
}

/** The providers that need no section in OpenClaw. The URLs are from the documentation of the providers. */
const knownProviders: Readonly<Record<string, { kind: string; baseUrl?: string; key?: string }>> = {
  anthropic: { kind: 'anthropic', key: 'ANTHROPIC_API_KEY' },
  openai: { kind: 'openai', key: 'OPENAI_API_KEY' },
  google: { kind: 'google', key: 'GEMINI_API_KEY' },
  openrouter: { kind: 'openai-compatible', baseUrl: 'https://openrouter.ai/api/v1', key: 'OPENROUTER_API_KEY' },
  groq: { kind: 'openai-compatible', baseUrl: 'https://api.groq.com/openai/v1', key: 'GROQ_API_KEY' },
  mistral: { kind: 'openai-compatible', baseUrl: 'https://api.mistral.ai/v1', key: 'MISTRAL_API_KEY' },
  xai: { kind: 'openai-compatible', baseUrl: 'https://api.x.ai/v1', key: 'XAI_API_KEY' },
  ollama: { kind: 'openai-compatible', baseUrl: 'http://127.0.0.1:11434/v1' },
  lmstudio: { kind: 'openai-compatible', baseUrl: 'http://127.0.0.1:1234/v1' },
}

function openModels(file: Section, defaults: Section, tools: Tools): Models {
  const section = file.open('models')
  const configured = section.open('providers')
  const providers: Fields = Object.create(null)
  for (const name of configured.listUnused()) {
    const provider = convertProvider(name, configured.open(name), tools)
    if (provider !== undefined) providers[name] = provider
  }
  section.take('mode')
  noteUnusedKeys(tools.notes, section)

  const addProvider = (name: string): boolean => {
    const [provider = ''] = name.split('/')
    if (!/^[^/\s]+\/\S+$/.test(name)) return false
    if (Object.hasOwn(providers, provider)) return true
    const row = Object.hasOwn(knownProviders, provider) ? knownProviders[provider] : undefined
    if (row === undefined) return false
    const { key, ...rest } = row
    providers[provider] = { ...rest, ...(key === undefined ? {} : { apiKey: tools.secrets.requireVariable(key) }) }
    return true
  }
  const aliases: Record<string, string> = Object.create(null)
  const settings = defaults.take('models')
  for (const [model, entry] of Object.entries(isJsonObject(settings) ? settings : {})) {
    const alias = isJsonObject(entry) ? entry['alias'] : undefined
    if (typeof alias === 'string' && addProvider(model)) aliases[alias.trim()] = model
  }
  return {
    next: 'Add it to models.providers, and name the model as <provider>/<model>.',
    resolve(text) {
      const name = text.trim()
      return Object.hasOwn(aliases, name) || addProvider(name) ? name : undefined
    },
    buildSection: () => ({ ...(Object.keys(aliases).length === 0 ? {} : { aliases }), providers }),
  }
}

function convertProvider(name: string, section: Section, tools: Tools): Fields | undefined {
  const api = section.take('api') ?? 'openai-completions'
  const kind = typeof api === 'string' && Object.hasOwn(kinds, api) ? kinds[api] : undefined
  if (kind === undefined) {
    tools.notes.add([...section.path, 'api'], 'is an API that is not known here. Its models are not taken over.')
    return undefined
  }
  const { baseUrl } = copyKeys(section, ['baseUrl'])
  const apiKey = moveSecret(section, 'apiKey', { name: `${toVariableName(name)}_API_KEY`, hasImportedUrl: true }, tools)
  const given = section.take('headers')
  const headers = Object.entries(isJsonObject(given) ? given : {}).flatMap(([header, value]: [string, JsonValue]) => {
    const path = [...section.path, 'headers', header]
    const text = moveSecretValue(
      value,
      path,
      { name: `${toVariableName(name)}_${toVariableName(header)}`, hasImportedUrl: true },
      tools,
    )
    return text === undefined ? [] : [[header, text] as const]
  })
  // Hookloom does not configure the capabilities of a model
  for (const key of ['models', 'auth']) section.take(key)
  noteUnusedKeys(tools.notes, section)
  const isBareOllama = api === 'ollama' && typeof baseUrl === 'string' && !/\/v1\/*$/.test(baseUrl)
  return {
    kind,
    ...(typeof baseUrl === 'string' ? { baseUrl: isBareOllama ? `${baseUrl.replace(/\/+$/, '')}/v1` : baseUrl } : {}),
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(headers.length === 0 ? {} : { headers: Object.fromEntries(headers) }),
  }
}
