// `channels` of the configuration: one section a channel. A channel whose section is absent is not configured; console always is.
import { z } from 'zod'
import { ChannelName } from './action.ts'
import { endpointUrl, FileName, filled, httpUrl, pathPart } from './values.ts'

const shared = {
  to: filled.optional().describe('Recipient of replies that name none.'),
  timeoutMs: z.int().positive().max(60_000).default(15_000).describe('Time for one message to be taken.'),
}

/** `channels.<name>` by name, `default` and `console` aside. */
export const channelSections = {
  telegram: z
    .strictObject({
      botToken: pathPart.describe('Token of the bot, from @BotFather.'),
      baseUrl: httpUrl.default('https://api.telegram.org').describe('The Bot API.'),
      ...shared,
    })
    .optional()
    .describe('Telegram, through a bot. `to`: a chat id, @name or <chat id>:topic:<n>.'),
  discord: z
    .strictObject({
      botToken: filled.describe('Token of the bot.'),
      baseUrl: httpUrl.default('https://discord.com/api/v10').describe('The HTTP API.'),
      ...shared,
    })
    .optional()
    .describe('Discord, through a bot. `to`: a channel id, channel:<id> or user:<id>.'),
  slack: z
    .strictObject({
      botToken: filled.describe('Bot token, xoxb-…, with chat:write.'),
      baseUrl: httpUrl.default('https://slack.com/api').describe('The Web API.'),
      ...shared,
    })
    .optional()
    .describe('Slack, through an app. `to`: a channel id, channel:<id> or user:<id>.'),
  mattermost: z
    .strictObject({
      token: filled.describe('Token of a bot account.'),
      baseUrl: httpUrl.describe('The server, such as https://chat.example.com.'),
      ...shared,
    })
    .optional()
    .describe('Mattermost, through a bot account. `to`: a channel id, channel:<id>, user:<id> or @name.'),
  msteams: z
    .strictObject({
      appId: filled.describe('Id of the Azure bot.'),
      appPassword: filled.describe('Its client secret.'),
      tenantId: pathPart.default('botframework.com').describe('Tenant of a single-tenant bot.'),
      baseUrl: httpUrl.default('https://smba.trafficmanager.net/teams').describe('The Bot Connector: the serviceUrl.'),
      loginUrl: httpUrl.default('https://login.microsoftonline.com').describe('Where its access token comes from.'),
      ...shared,
    })
    .optional()
    .describe('Microsoft Teams, through a bot. `to`: a conversation id.'),
  whatsapp: z
    .strictObject({
      accessToken: filled.describe('Token of a system user.'),
      phoneNumberId: pathPart.describe('Id of the sending number.'),
      baseUrl: httpUrl.default('https://graph.facebook.com/v25.0').describe('The Graph API with its version.'),
      template: z
        .strictObject({
          name: filled.describe('Name of an approved template with one body variable.'),
          language: filled.default('en').describe('Its language code.'),
        })
        .optional()
        .describe('What is sent when the recipient has not written for 24 hours.'),
      ...shared,
    })
    .optional()
    .describe('WhatsApp, through the Cloud API. `to`: a phone number with country code.'),
  signal: z
    .strictObject({
      account: filled.optional().describe('The sending number, where the daemon has several.'),
      baseUrl: httpUrl.default('http://127.0.0.1:8080').describe('signal-cli, started as a daemon with --http.'),
      ...shared,
    })
    .optional()
    .describe('Signal, through signal-cli. `to`: a phone number, uuid:<id>, username:<name> or group:<id>.'),
  imessage: z
    .strictObject({
      password: filled.describe('Password of the BlueBubbles server.'),
      baseUrl: httpUrl.describe('The BlueBubbles server, such as http://mac.local:1234.'),
      ...shared,
    })
    .optional()
    .describe('iMessage, through BlueBubbles on a Mac. `to`: a phone number, a mail address or chat_guid:<guid>.'),
  webhook: z
    .strictObject({
      endpoints: z
        .record(
          z.string(),
          z.strictObject({
            url: endpointUrl.describe('Where replies go.'),
            secret: filled
              .regex(/^(?!whsec_)|^whsec_[A-Za-z0-9+/]+={0,2}$/, 'must go on in base64 after whsec_')
              .describe('Signs them after Standard Webhooks: whsec_… or plain text.'),
          }),
        )
        .describe('Receivers by name. Only these URLs are ever called.'),
      ...shared,
    })
    .optional()
    .describe('A signed HTTP request. `to`: the name of an endpoint.'),
} as const

export const ChannelsConfig = z.strictObject({
  default: z
    .strictObject({
      channel: ChannelName.describe('Channel of the reply.'),
      to: filled.optional().describe('Recipient on the channel.'),
    })
    .optional()
    .describe('Where `last` goes while no reply went anywhere.'),
  own: z
    .record(FileName, z.looseObject({ to: shared.to }))
    .default({})
    .describe('Channels in code, by the names of their files in hooks/channels: `to`, and the options of the code.'),
  ...channelSections,
})
export type ChannelsConfig = z.infer<typeof ChannelsConfig>
/** The section of one channel, as configured. */
export type ChannelConfig<Name extends keyof typeof channelSections> = NonNullable<ChannelsConfig[Name]>
