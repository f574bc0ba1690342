// Converts a hooks.json of adnanh/webhook to mappings. The commands of its hooks are not run: the agent gets the arguments as a message.
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json.ts'
import { trimSlashes } from '../../base/text.ts'
import { credentialHeaders, isSecretHeader } from '../../core/model/delivery.ts'
import { formatPath, formatPlaceholder } from '../../base/path-text.ts'
import type { ConfigPath } from '../../core/model/issue.ts'
import type { ImportDraft, DraftMapping, Fields, Tools } from './draft.ts'
import { noteUnusedKeys, openSection, type Section } from './notes.ts'
import { type Branch, convertRule } from './trigger-rule.ts'

/** In the notes, the place of a mapping is the id of its hook. */
export function convertWebhook(hooks: readonly JsonObject[], tools: Tools): ImportDraft {
  const mappings = hooks.flatMap((hook) => convertHook(hook, tools))
  const open = mappings.filter(({ mapping }) => mapping['verify'] === undefined).map(({ from }) => String(from[0]))
  if (open.length > 0) {
    const need = 'no proof that can be checked here: the sender must send the hook token, as "Authorization: Bearer".'
    tools.notes.add([[...new Set(open)].join(', ')], open.length === 1 ? `has ${need}` : `have ${need}`)
  }
  const commands = hooks.filter((hook) => hook['execute-command'] !== undefined)
  if (commands.length > 0) {
    tools.notes.add(
      ['execute-command'],
      'has no counterpart: an agent gets a message with the arguments. Say in "instructions" of the mapping what it should do.',
    )
  }
  return {
    config: {
      server: { host: '127.0.0.1', port: 8790, adminPort: 8791 },
      hooks: {
        enabled: true,
        token: tools.secrets.requireToken('HOOKLOOM_TOKEN'),
        defaultSessionKey: 'hook:inbox',
        allowedSessionKeyPrefixes: ['hook:'],
      },
      channels: { default: { channel: 'console' } },
    },
    mappings,
  }
}

const ignoredKeys = ['execute-command', 'command-working-directory', 'incoming-payload-content-type']

function convertHook(hook: JsonObject, tools: Tools): DraftMapping[] {
  const { notes } = tools
  const id = trimSlashes(typeof hook['id'] === 'string' ? hook['id'].trim() : '')
  if (id === '') {
    notes.add(['(a hook without an id)'], 'is not taken over: its id is its URL.')
    return []
  }
  const path: ConfigPath = [id]
  const section = openSection(path, hook)
  for (const key of ['id', ...ignoredKeys]) section.take(key)
  const branches = convertRule(section.take('trigger-rule'), [...path, 'trigger-rule'], tools)
  const messageTemplate = buildMessage(section, tools)
  const methods = section.take('http-methods')
  if (Array.isArray(methods) && methods.some((method) => method !== 'POST')) {
    notes.add([...path, 'http-methods'], 'has other methods than POST, which is the only one here.')
  }
  noteUnusedKeys(notes, section, 'the answer is always JSON, and no command is run')
  return (branches ?? []).map((branch, index) => ({
    from: path,
    mapping: {
      id: index === 0 ? id : `${id}-${index + 1}`,
      match: buildMatch(id, branch),
      name: id,
      ...(branch.verify === undefined ? {} : { verify: { ...branch.verify, ...buildTokenRequirement(branch) } }),
      ...(messageTemplate === undefined ? {} : { messageTemplate }),
    },
  }))
}

function buildTokenRequirement({ needsToken }: Branch): { also?: 'token' } {
  return needsToken === true ? { also: 'token' } : {}
}

function buildMatch(path: string, { headers, payload }: Branch): Fields {
  return {
    path,
    ...(Object.keys(headers).length === 0 ? {} : { headers: unwrapSingles(headers) }),
    ...(Object.keys(payload).length === 0 ? {} : { payload: unwrapSingles(payload) }),
  }
}

/** A list with only one value becomes that value. */
function unwrapSingles(conditions: Readonly<Record<string, readonly unknown[]>>): Fields {
  return Object.fromEntries(
    Object.entries(conditions).map(([key, values]) => [key, values.length === 1 ? values[0] : values]),
  )
}

const argumentKeys = ['pass-arguments-to-command', 'pass-environment-to-command']
const unsupportedKeys = ['pass-file-to-command', 'parse-parameters-as-json']

/** A template with a line for each argument that a template can read. Undefined if there is none: the message is then the whole payload. */
function buildMessage(section: Section, { notes }: Tools): string | undefined {
  const lines = argumentKeys.flatMap((key) => {
    const given = section.take(key)
    const all = Array.isArray(given) ? given : []
    return all.flatMap((argument, index) => {
      const line = isJsonObject(argument) ? renderArgument(argument) : undefined
      if (line === undefined)
        notes.add([...section.path, key, index], 'is a value that templates cannot read. Write a transform.')
      return line ?? []
    })
  })
  for (const key of unsupportedKeys) {
    if (section.take(key) !== undefined) notes.add([...section.path, key], 'has no counterpart. Write a transform.')
  }
  return lines.length === 0 ? undefined : lines.join('\n')
}

function renderArgument({ source, name, envname }: JsonObject): string | undefined {
  if (source === 'entire-payload') return '{{payload}}'
  if (typeof name !== 'string' || name.trim() === '') return undefined
  const label = checkLiteralText(envname) ?? checkLiteralText(name)
  const value = renderPlaceholder(String(source), name.trim())
  if (value === undefined || label === undefined) return undefined
  return source === 'string' && envname === undefined ? value : `${label}: ${value}`
}

function renderPlaceholder(source: string, name: string): string | undefined {
  const header = name.toLowerCase()
  switch (source) {
    case 'string':
      return checkLiteralText(name)
    case 'payload':
      return `{{${formatPlaceholder(name.split('.'))}}}`
    case 'header':
      return credentialHeaders.has(header) || isSecretHeader(header)
        ? undefined
        : `{{${formatPath(['headers', header])}}}`
    case 'url':
    case 'query':
      return `{{${formatPath(['query', name])}}}`
    default:
      return undefined
  }
}

/** The text as literal text of a template. Undefined if a template would read a placeholder in it. */
function checkLiteralText(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' && !value.includes('{{') ? value : undefined
}
