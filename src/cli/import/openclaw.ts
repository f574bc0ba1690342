// Converts the hooks, mappings and gateway of an openclaw.json to a configuration. Source: OpenClaw's public documentation.
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json.ts'
import { takeStart, trimSlashes } from '../../base/text.ts'
import type { ConfigPath } from '../../core/model/issue.ts'
import { isAgentAllowed, isBeginningAllowed } from '../../model/config/permission.ts'
import { Problem } from '../../core/model/problem.ts'
import { compileTemplate } from '../../core/mapping/template.ts'
import { convertAgents } from './openclaw-agents.ts'
import { convertChannels } from './openclaw-channels.ts'
import {
  unescapeText,
  copyKeys,
  moveSecretValue,
  type ImportDraft,
  type DraftMapping,
  type Fields,
  type Tools,
} from './draft.ts'
import { noteUnusedKeys, openSection, type Section } from './notes.ts'

export function convertOpenClaw(root: JsonObject, tools: Tools): ImportDraft {
  const { notes } = tools
  const file = openSection([], root)
  const channels = convertChannels(file.open('channels'), tools)
  const hooks = file.open('hooks')
  const agents = convertAgents(file, tools, listModels(hooks))
  const gateway = file.open('gateway')
  const server: Fields = {
    host: '127.0.0.1',
    port: 8790,
    adminPort: 8791,
    ...copyKeys(gateway, ['trustedProxies']),
    ...copyKeys(hooks, ['maxBodyBytes']),
  }
  noteUnusedKeys(notes, gateway)
  const settings = convertHooks(hooks, tools)
  const known = { channels: Object.keys(channels), agents: agents.ids, allowed: settings.allowed }
  const mappings = readList(hooks, 'mappings').flatMap((entry, index) => {
    const mapping = convertMapping(openSection(['hooks', 'mappings', index], entry), tools, known)
    return mapping ?? []
  })
  const transformsDir = hooks.take('transformsDir')
  noteUnusedKeys(notes, hooks)
  // the variables of the section "env" are read only where a key refers to them
  file.take('env')
  for (const key of ['$schema', 'meta', 'wizard']) file.take(key)
  noteUnusedKeys(notes, file)
  return {
    config: {
      server,
      hooks: settings.hooks,
      ...agents.config,
      channels: { default: { channel: 'console' }, ...channels },
    },
    mappings,
    transformsDir: typeof transformsDir === 'string' ? transformsDir : undefined,
  }
}

function readList(section: Section, key: string): readonly JsonValue[] {
  const value = section.take(key)
  return Array.isArray(value) ? value : []
}

/** Collects the models that hooks name, so that the providers of these models are imported too. */
function listModels(hooks: Section): string[] {
  const mappings = readList(hooks, 'mappings')
  const gmail = hooks.take('gmail')
  const named = [...mappings, gmail ?? null].map((entry) => (isJsonObject(entry) ? entry['model'] : undefined))
  return named.filter((model) => typeof model === 'string')
}

function convertHooks(section: Section, tools: Tools): { hooks: Fields; allowed: readonly string[] | undefined } {
  const { notes, secrets } = tools
  const isOn = section.take('enabled') === true
  const token = section.take('token')
  const isSendable = typeof token !== 'string' || /^[\x20-\x7e]*$/.test(token)
  const given = isSendable
    ? moveSecretValue(token, ['hooks', 'token'], { name: 'HOOKLOOM_TOKEN', minBytes: 16 }, tools)
    : undefined
  if (given === undefined && isOn) {
    notes.add(['hooks', 'token'], `is ${isSendable ? 'missing' : 'not ASCII'}: HOOKLOOM_TOKEN in .env is a new token.`)
  }
  const agents = section.take('allowedAgentIds')
  const allowed = Array.isArray(agents) ? agents.filter((id) => typeof id === 'string' && id.trim() !== '') : undefined
  const prefixes = section.take('allowedSessionKeyPrefixes')
  const filled = Array.isArray(prefixes)
    ? prefixes.filter((text) => typeof text === 'string' && text.trim() !== '')
    : []
  const texts = (filled as string[]).map((text) => unescapeText(text.trim()))
  const hooks: Fields = {
    enabled: isOn,
    token: given ?? secrets.requireToken('HOOKLOOM_TOKEN'),
    ...copyKeys(section, ['path', 'defaultSessionKey', 'allowRequestSessionKey']),
    ...(texts.length === 0 ? {} : { allowedSessionKeyPrefixes: texts }),
    ...(allowed === undefined ? {} : { allowedAgentIds: allowed }),
  }
  const presets = readList(section, 'presets').flatMap((name, index) => {
    if (name !== 'gmail') {
      notes.add(
        ['hooks', 'presets', index],
        'is not a preset of OpenClaw. "hookloom add preset <name>" adds one of Hookloom.',
      )
      return []
    }
    if (isBeginningAllowed('hook:gmail:', texts)) return ['gmail']
    notes.add(['hooks', 'presets', index], 'needs "hook:gmail:" in hooks.allowedSessionKeyPrefixes. Add both.')
    return []
  })
  const gmail = convertGmail(section, tools)
  return {
    hooks: { ...hooks, presets, ...(gmail === undefined ? {} : { gmail }) },
    allowed: allowed as string[] | undefined,
  }
}

function convertGmail(hooks: Section, tools: Tools): Fields | undefined {
  if (!hooks.has('gmail')) return undefined
  const section = hooks.open('gmail')
  const label = section.take('label')
  const renewMinutes = section.take('renewEveryMinutes')
  const taken = copyKeys(section, ['model', 'thinking', 'includeBody', 'maxBytes', 'allowUnsafeExternalContent'])
  if (section.has('account')) {
    for (const key of ['account', 'topic', 'subscription']) section.take(key)
    tools.notes.add(['hooks', 'gmail', 'account'], 'needs a consent for this gateway: run "hookloom gmail setup".')
  }
  noteUnusedKeys(tools.notes, section)
  return {
    ...taken,
    ...(typeof label === 'string' ? { labels: [unescapeText(label)] } : {}),
    ...(renewMinutes === undefined ? {} : { renewMinutes }),
  }
}

type Known = {
  readonly channels: readonly string[]
  readonly agents: { readonly listed: readonly string[]; readonly default: string }
  readonly allowed: readonly string[] | undefined
}

const agentKeys = ['agentId', 'sessionMode', 'channel', 'to', 'model', 'thinking', 'timeoutSeconds', 'deliver']
const plainKeys = ['action', 'wakeMode', 'forEach', 'allowUnsafeExternalContent', ...agentKeys]
const templateKeys = ['name', 'sessionKey', 'messageTemplate', 'textTemplate']

/** Converts a mapping. Undefined if the mapping cannot be imported; a note says why. No condition is left out, because the mapping would
 * then match more requests. */
function convertMapping(section: Section, tools: Tools, known: Known): DraftMapping | undefined {
  const { notes } = tools
  const { path } = section
  const leaveOut = (at: ConfigPath, rest: string): undefined => {
    notes.add(at, `${rest} The mapping is not taken over.`)
    return undefined
  }
  const match = convertMatch(section.open('match'))
  if (typeof match === 'string') return leaveOut([...path, 'match'], match)
  const mapping: Fields = { ...copyKeys(section, ['id']), match, ...copyKeys(section, plainKeys) }
  for (const key of templateKeys) {
    const text = section.take(key)
    if (typeof text !== 'string' || text.trim() === '') continue
    const template = unescapeText(convertTemplate(text))
    const fault = findTemplateFault(template)
    if (fault === undefined) mapping[key] = template
    else if (key === 'sessionKey') return leaveOut([...path, key], `: ${fault}`)
    else notes.add([...path, key], `: ${fault} A transform can make this text.`)
  }
  if (section.has('transform')) {
    const transform = section.open('transform')
    mapping['transform'] = copyKeys(transform, ['module', 'export'])
    noteUnusedKeys(notes, transform)
  }
  if (mapping['action'] === 'wake') dropUnused(mapping, path, tools)
  const { agentId } = mapping
  if (typeof agentId === 'string' && !known.agents.listed.includes(agentId.trim())) {
    if (!isAgentAllowed(known.agents.default, known.allowed)) {
      return leaveOut([...path, 'agentId'], 'is not in agents.list, and hooks.allowedAgentIds bars the default agent.')
    }
    delete mapping['agentId']
    notes.add([...path, 'agentId'], 'is not in agents.list: the default agent runs it, as in OpenClaw.')
  }
  convertRecipient(mapping, path, tools, known)
  noteUnusedKeys(notes, section)
  return { from: path, mapping }
}

/** The conditions, or the reason why they cannot be imported. OpenClaw compares `source` with the payload field `source`. */
function convertMatch(section: Section): Fields | string {
  const [path, source] = [section.take('path'), section.take('source')]
  const [other] = section.listUnused()
  if (other !== undefined) return `has the key "${takeStart(other, 60)}", which is not a condition here.`
  const name = typeof path === 'string' ? trimSlashes(path.trim()) : ''
  const wanted = typeof source === 'string' ? source.trim() : ''
  return {
    ...(name === '' ? {} : { path: unescapeText(name) }),
    ...(wanted === '' ? {} : { payload: { source: unescapeText(wanted) } }),
  }
}

/** Removes the keys that a wake does not use. */
function dropUnused(mapping: Fields, path: ConfigPath, { notes }: Tools): void {
  for (const key of [...agentKeys, 'sessionKey', 'messageTemplate']) {
    if (mapping[key] === undefined) continue
    delete mapping[key]
    notes.add([...path, key], 'is not used: a wake is an event in the main session of the default agent.')
  }
}

/** A reply goes to the recipient that the file names, or nowhere: without its channel or recipient, the reply would reach another chat. Also
 * removes a model that is a template. */
function convertRecipient(mapping: Fields, path: ConfigPath, { notes }: Tools, known: Known): void {
  const { channel, to, model } = mapping
  if (typeof model === 'string' && model.includes('{{')) {
    delete mapping['model']
    notes.add([...path, 'model'], 'is a template, and a model is literal here. A transform can compute it.')
  }
  const names = new Map([
    ['imsg', 'imessage'],
    ['teams', 'msteams'],
  ])
  const name = typeof channel === 'string' ? (names.get(channel.trim()) ?? channel.trim()) : 'last'
  const turnOffReplies = (key: string, rest: string) => {
    for (const part of ['channel', 'to']) delete mapping[part]
    mapping['deliver'] = false
    notes.add([...path, key], `${rest} Its replies are not delivered.`)
  }
  if (name !== 'last' && !known.channels.includes(name) && mapping['deliver'] !== false) {
    return turnOffReplies(
      'channel',
      'is a channel that is not configured here. Configure it, or write it in hooks/channels.',
    )
  }
  if (typeof to === 'string' && to.includes('{{')) {
    return turnOffReplies('to', 'is a template, and a recipient is literal here. A transform can compute it.')
  }
  if (channel !== undefined) mapping['channel'] = name
}

/** In OpenClaw, `source`, `event`, `payload`, `headers` and `query` without a prefix are fields of the payload, and `a[b]` means `a.b`. */
function convertTemplate(text: string): string {
  return text.replaceAll(/\{\{\s*([^}]+?)\s*\}\}/g, (_, expression: string) => {
    const dotted = expression.replaceAll(/\[(?!\d+\]|["'])([^\]]+)\]/g, '.$1').replace(/^\./, '')
    return /^(?:source|event|payload|headers|query)$/.test(dotted) ? `{{payload.${dotted}}}` : `{{${dotted}}}`
  })
}

function findTemplateFault(text: string): string | undefined {
  try {
    compileTemplate(text)
    return undefined
  } catch (error) {
    if (error instanceof Problem) return error.message
    throw error
  }
}
