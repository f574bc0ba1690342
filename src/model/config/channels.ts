// `channels` of the configuration: one section for each channel. A channel without a section is not configured, except console.
import { z } from 'zod'
import { ChannelName, type ConfiguredChannelName } from '../action.ts'
import { apiUrl, endpointUrl, nonBlank, httpUrl, pathPart, plainName, RetryConfig, senderId } from '../values.ts'

const shared = {
  to: nonBlank.optional().describe('Recipient of replies that name none.'),
  timeoutMs: z
    .int()
    .positive()
    .max(60_000)
    .default(15_000)
    .describe('Milliseconds in which the provider must answer one request.'),
  onUnknown: z
    .enum(['stop', 'repeat'])
    .default('stop')
    .describe(
      'What happens after an attempt that may have posted the message. `stop` ends the job. `repeat` tries again, so that the message may appear twice.',
    ),
}

/** The sections `channels.<name>` of the built-in channels. The console has none. */
export const channelSections = {
  telegram: z
    .strictObject({
      botToken: pathPart.describe('Token of the bot, from @BotFather.'),
      baseUrl: httpUrl
        .default('https://api.telegram.org')
        .describe('URL of the Bot API. Change it for a local Bot API server.'),
      ...shared,
    })
    .optional()
    .describe('Telegram, through a bot. `to`: a chat id, @name or <chat id>:topic:<n>.'),
  discord: z
    .strictObject({
      botToken: nonBlank.describe('Token of the bot, from the Developer Portal.'),
      baseUrl: httpUrl
        .default('https://discord.com/api/v10')
        .describe('URL of the HTTP API. Change it only for a proxy.'),
      ...shared,
    })
    .optional()
    .describe('Discord, through a bot. `to`: a channel id, channel:<id> or user:<id>.'),
  slack: z
    .strictObject({
      botToken: nonBlank.describe('Bot token, xoxb-…, with the scope chat:write.'),
      baseUrl: httpUrl.default('https://slack.com/api').describe('URL of the Web API. Change it only for a proxy.'),
      ...shared,
    })
    .optional()
    .describe('Slack, through an app. `to`: a channel id, channel:<id>, <channel id>:thread:<ts> or user:<id>.'),
  mattermost: z
    .strictObject({
      token: nonBlank.describe('Token of a bot account.'),
      baseUrl: httpUrl.describe('URL of the server, such as https://chat.example.com.'),
      ...shared,
    })
    .optional()
    .describe('Mattermost, through a bot account. `to`: a channel id, channel:<id>, user:<id> or @name.'),
  msteams: z
    .strictObject({
      appId: nonBlank.describe('App id of the Azure bot.'),
      appPassword: nonBlank.describe('Client secret of the Azure bot.'),
      tenantId: pathPart
        .default('botframework.com')
        .describe('Tenant id of the Azure bot. Set it for a single-tenant bot.'),
      baseUrl: httpUrl
        .default('https://smba.trafficmanager.net/teams')
        .describe('URL of the Bot Connector: the `serviceUrl` of the messages that the bot receives.'),
      loginUrl: httpUrl
        .default('https://login.microsoftonline.com')
        .describe('URL that gives the access token. Change it for a national cloud.'),
      ...shared,
    })
    .optional()
    .describe('Microsoft Teams, through a bot. `to`: a conversation id.'),
  whatsapp: z
    .strictObject({
      accessToken: nonBlank.describe('Token of a system user.'),
      phoneNumberId: pathPart.describe('Id of the sending phone number, not the number itself.'),
      baseUrl: httpUrl.default('https://graph.facebook.com/v25.0').describe('URL of the Graph API, with its version.'),
      template: z
        .strictObject({
          name: nonBlank.describe('Name of an approved template with one variable in its body.'),
          language: nonBlank.default('en').describe('Language code of the template, such as en_US.'),
        })
        .optional()
        .describe('Message template for recipients who have not written for 24 hours.'),
      ...shared,
    })
    .optional()
    .describe('WhatsApp, through the Cloud API. `to`: a phone number with country code.'),
  signal: z
    .strictObject({
      account: nonBlank.optional().describe('The sending phone number. Set it if the daemon has several accounts.'),
      baseUrl: httpUrl
        .default('http://127.0.0.1:8080')
        .describe('URL of signal-cli, which runs as a daemon with --http.'),
      ...shared,
    })
    .optional()
    .describe('Signal, through signal-cli. `to`: a phone number, uuid:<id>, username:<name> or group:<id>.'),
  imessage: z
    .strictObject({
      password: nonBlank.describe('Password of the BlueBubbles server.'),
      baseUrl: httpUrl.describe('URL of the BlueBubbles server, such as http://mac.local:1234.'),
      ...shared,
    })
    .optional()
    .describe('iMessage, through BlueBubbles on a Mac. `to`: a phone number, a mail address or chat_guid:<guid>.'),
  github: z
    .strictObject({
      token: nonBlank.optional().describe('Token that may write issues, pull requests and commit statuses.'),
      appId: senderId.optional().describe('Id of a GitHub App, in place of `token`.'),
      privateKey: nonBlank
        .optional()
        .describe('Private key of the GitHub App, in PEM format, such as "${file:/run/secrets/github-app.pem}".'),
      baseUrl: apiUrl
        .default('https://api.github.com')
        .describe('URL of the API. GitHub Enterprise Server: https://<host>/api/v3.'),
      ...shared,
    })
    .superRefine(({ token, appId, privateKey }, context) => {
      const report = (key: string, message: string) => context.addIssue({ code: 'custom', path: [key], message })
      if ((token === undefined) === (appId === undefined)) report('token', 'must be set, or appId: exactly one of them')
      if (appId !== undefined && privateKey === undefined) report('privateKey', 'must be the private key of the App')
    })
    .optional()
    .describe('Comments on GitHub, by a token or a GitHub App. `to`: <owner>/<repository>#<number>.'),
  gitlab: z
    .strictObject({
      token: nonBlank.describe('Access token with the scope api, of a project, a group or a person.'),
      baseUrl: apiUrl
        .default('https://gitlab.com/api/v4')
        .describe('URL of the API. Your own server: https://<host>/api/v4.'),
      ...shared,
    })
    .optional()
    .describe(
      'Comments on GitLab, by an access token. `to`: <group>/<project>#<issue> or <group>/<project>!<merge request>.',
    ),
  linear: z
    .strictObject({
      apiKey: nonBlank.describe('API key that may create comments, lin_api_….'),
      baseUrl: apiUrl.default('https://api.linear.app/graphql').describe('URL of the API. Change it only for a proxy.'),
      ...shared,
    })
    .optional()
    .describe('Comments on Linear, by an API key. `to`: the identifier of an issue, such as ENG-17, or its id.'),
  webhook: z
    .strictObject({
      endpoints: z
        .record(
          z.string(),
          z.strictObject({
            url: endpointUrl.describe('URL that receives the replies and the callbacks.'),
            secret: nonBlank
              .regex(/^(?!whsec_)|^whsec_[A-Za-z0-9+/]+={0,2}$/, 'must go on in base64 after whsec_')
              .describe(
                'Secret that signs each request by Standard Webhooks: whsec_… or plain text, of at least 16 bytes.',
              ),
          }),
        )
        .describe('The receivers, each under its name. No other URL is ever called.'),
      ...shared,
    })
    .optional()
    .describe('A signed HTTP request. `to`: the name of an endpoint.'),
} as const satisfies Readonly<Record<ConfiguredChannelName, z.ZodType>>

export const ChannelsConfig = z.strictObject({
  default: z
    .strictObject({
      channel: ChannelName.describe('Channel that `last` means while the main session has no last recipient.'),
      to: nonBlank
        .optional()
        .describe('Recipient on this channel. If the section of the channel has `to`, that one is used instead.'),
    })
    .optional()
    .describe('What `last` means while the main session has no last recipient.'),
  retry: RetryConfig.prefault({}).describe(
    'Retries of what a job sends, such as the reply, while its receiver cannot be reached, answers 429, or is overloaded.',
  ),
  own: z
    .record(plainName, z.looseObject({ to: shared.to, onUnknown: shared.onUnknown }))
    .default({})
    .describe(
      'Channels in your own code, each under the name of its file in hooks/channels: `to`, `onUnknown`, and the options of the code.',
    ),
  ...channelSections,
})
export type ChannelsConfig = z.infer<typeof ChannelsConfig>
/** The section of one channel, as configured. */
export type ChannelConfig<Name extends keyof typeof channelSections> = NonNullable<ChannelsConfig[Name]>
