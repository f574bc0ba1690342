// Imports the channels of an openclaw.json, with only the keys that a reply needs. Rules for incoming chat messages cannot be imported.
import { isJsonObject, type JsonObject } from '../../base/json.ts'
import { describeFirstIssue } from '../../core/model/issue.ts'
import { builtInChannels } from '../../gateway/config/keys.ts'
import { copyKeys, type Fields, moveSecret, type Tools } from './draft.ts'
import { openSection, type Section, Variable } from './notes.ts'

type Row = {
  readonly to: string
  /** The key in OpenClaw, the key in Hookloom, and the variable in `.env`. */
  readonly secret: readonly [theirs: string, ours: string, variable: string] | undefined
  /** The key in OpenClaw and the key in Hookloom. */
  readonly plain: readonly (readonly [theirs: string, ours: string])[]
}

const rows: Readonly<Record<string, Row>> = {
  telegram: { to: 'telegram', secret: ['botToken', 'botToken', 'TELEGRAM_BOT_TOKEN'], plain: [['apiRoot', 'baseUrl']] },
  discord: { to: 'discord', secret: ['token', 'botToken', 'DISCORD_BOT_TOKEN'], plain: [] },
  slack: { to: 'slack', secret: ['botToken', 'botToken', 'SLACK_BOT_TOKEN'], plain: [] },
  mattermost: {
    to: 'mattermost',
    secret: ['botToken', 'token', 'MATTERMOST_BOT_TOKEN'],
    plain: [['baseUrl', 'baseUrl']],
  },
  msteams: {
    to: 'msteams',
    secret: ['appPassword', 'appPassword', 'MSTEAMS_APP_PASSWORD'],
    plain: [
      ['appId', 'appId'],
      ['tenantId', 'tenantId'],
    ],
  },
  signal: {
    to: 'signal',
    secret: undefined,
    plain: [
      ['account', 'account'],
      ['httpUrl', 'baseUrl'],
    ],
  },
  bluebubbles: {
    to: 'imessage',
    secret: ['password', 'password', 'BLUEBUBBLES_PASSWORD'],
    plain: [['serverUrl', 'baseUrl']],
  },
}

/** The notes about keys of `channels` that have no row. */
const others: Readonly<Record<string, string>> = {
  whatsapp: 'is a linked phone in OpenClaw. Here WhatsApp needs a Cloud API token: set channels.whatsapp.',
  imessage: 'is the program imsg in OpenClaw. Here iMessage needs a BlueBubbles server: set channels.imessage.',
  defaults: 'is about incoming messages, and nothing is received from chats here.',
}

/** The complete channel sections, under their names in Hookloom. */
export function convertChannels(all: Section, tools: Tools): Fields {
  const { notes } = tools
  const channels: Fields = {}
  for (const name of all.listUnused()) {
    const row = Object.hasOwn(rows, name) ? rows[name] : undefined
    const value = all.take(name)
    if (row === undefined) {
      const other = Object.hasOwn(others, name) ? others[name] : undefined
      notes.add(
        [...all.path, name],
        other ?? 'is a channel that Hookloom does not have. You can write it in hooks/channels.',
      )
    } else if (isJsonObject(value) && value['enabled'] === false) {
      notes.add([...all.path, name], 'is turned off, so it is not taken over.')
    } else if (isJsonObject(value)) {
      const channel = convertChannel(
        openDefaultAccount(openSection([...all.path, name], value), value, tools),
        row,
        tools,
      )
      if (channel !== undefined) channels[row.to] = channel
    }
  }
  return channels
}

/** The section with the keys of the default account. A channel of Hookloom has one account. */
function openDefaultAccount(section: Section, value: JsonObject, { notes }: Tools): Section {
  const { accounts, defaultAccount, ...shared } = value
  if (!isJsonObject(accounts)) return openSection(section.path, shared)
  const ids = Object.keys(accounts).toSorted()
  const chosen = ids.find((id) => id === defaultAccount) ?? ids.find((id) => id === 'default') ?? ids[0] ?? ''
  const account = accounts[chosen]
  const rest = ids.filter((id) => id !== chosen)
  if (rest.length > 0) {
    notes.add([...section.path, 'accounts'], `has more accounts than one. Only "${chosen}" is taken over.`)
  }
  return openSection(section.path, { ...shared, ...(isJsonObject(account) ? account : {}) })
}

function convertChannel(section: Section, { to, secret, plain }: Row, tools: Tools): Fields | undefined {
  const { notes, secrets } = tools
  const channel: Fields = {}
  if (secret !== undefined) {
    const [theirs, ours, variable] = secret
    const hasImportedUrl = plain.some(([key, own]) => own === 'baseUrl' && section.has(key))
    const kept = moveSecret(section, theirs, { name: variable, hasImportedUrl }, tools)
    channel[ours] = kept ?? (hasImportedUrl ? secrets.addPlaceholder(variable) : secrets.requireVariable(variable))
  }
  for (const [theirs, ours] of plain) {
    const value = copyKeys(section, [theirs])[theirs]
    if (value !== undefined) channel[ours] = value
  }
  for (const key of ['enabled', 'name']) section.take(key)
  // placeholders, because the variables are not substituted yet
  const parsed = builtInChannels.find(({ name }) => name === to)?.section?.safeParse(withPlaceholders(channel))
  if (parsed?.success === false) {
    notes.add(section.path, `is not taken over: ${describeFirstIssue(parsed.error, channel)}. Set channels.${to}.`)
    return undefined
  }
  const left = section.listUnused()
  if (left.length > 0) {
    notes.add(section.path, `has no counterpart here for ${left.join(', ')}: it only sends replies.`)
  }
  return channel
}

function withPlaceholders(fields: Fields): Fields {
  const pairs = Object.entries(fields).map(([key, value]): [string, unknown] => {
    return [key, value instanceof Variable ? 'variable' : value]
  })
  return Object.fromEntries(pairs)
}
