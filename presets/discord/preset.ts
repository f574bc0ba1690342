// Installs of the app, its removal and purchases become agent turns.
import { z } from 'zod'
import { definePreset } from '../../src/define.ts'
import { type EventMapping, nonBlankText, buildParts } from '../signed.ts'

const DiscordOptions = z.strictObject({
  path: nonBlankText.optional(),
  instructions: nonBlankText.optional(),
  /** The "Public Key" of the application. Discord signs with the private key; there is no shared secret. */
  publicKey: nonBlankText.optional(),
})
type DiscordOptions = z.infer<typeof DiscordOptions>

const user =
  '{{event.data.user.global_name | default: "a user without a name"}} ({{event.data.user.username | default: "unknown"}})'
const when = 'At: {{payload.event.timestamp | default: "an unknown time"}}'

/** Source: https://docs.discord.com/developers/events/webhook-events */
const events: readonly EventMapping[] = [
  {
    event: 'installed',
    match: { payload: { 'event.type': 'APPLICATION_AUTHORIZED' } },
    name: 'Discord app',
    sessionKey: 'hook:discord:{{event.data.user.id}}',
    message: [
      `${user} installed the app.`,
      'Server: {{event.data.guild.name | default: "none, for their own account"}} ({{event.data.guild.id | default: "no id"}})',
      'User: https://discord.com/users/{{event.data.user.id}}',
      when,
    ],
  },
  {
    event: 'removed',
    match: { payload: { 'event.type': 'APPLICATION_DEAUTHORIZED' } },
    name: 'Discord app',
    sessionKey: 'hook:discord:{{event.data.user.id}}',
    message: [`${user} removed the app.`, 'User: https://discord.com/users/{{event.data.user.id}}', when],
  },
  {
    event: 'purchase',
    match: { payload: { 'event.type': 'ENTITLEMENT_CREATE' } },
    name: 'Discord purchase',
    sessionKey: 'hook:discord:{{event.data.user_id | default: "purchases"}}',
    message: [
      'Somebody got the SKU {{event.data.sku_id | default: "unknown"}} of the app.',
      'User: https://discord.com/users/{{event.data.user_id | default: "@me"}}; server: {{event.data.guild_id | default: "none"}}',
      'Until: {{event.data.ends_at | default: "without an end"}}',
      when,
    ],
  },
]

const instructions = 'Say in one or two sentences what happened to the app, and who did it.'

export default definePreset<DiscordOptions>({
  name: 'discord',
  title: 'Installs of the app, its removal and purchases become agent turns.',
  options: DiscordOptions,
  setup: { key: { option: 'publicKey', from: 'sender' } },
  build: ({ publicKey, ...own }) =>
    buildParts('discord', {
      own,
      verify: publicKey === undefined ? undefined : { scheme: 'discord', publicKey },
      instructions,
      events,
    }),
})
