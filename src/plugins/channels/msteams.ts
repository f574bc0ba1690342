// Microsoft Teams, through the Bot Connector.
// https://learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-api-reference
import { z } from 'zod'
import {
  type ChannelHost,
  type ChannelParts,
  type ChannelSettings,
  type SendResult,
  defineChannel,
} from '../../define.ts'
import { splitMarkdown } from './shared/chunks.ts'
import {
  type ErrorMeaning,
  type HttpOutcome,
  readSuccess,
  describeWrongRecipient,
  createFailureReader,
  sendJson,
} from './shared/http.ts'
import { teamsMarkdown } from './shared/markup.ts'
import { render } from './shared/markdown.ts'
import { createTeamsToken } from './shared/msteams-token.ts'
import { nonBlank, httpUrl, pathPart } from './shared/values.ts'

/** Teams accepts activities of about 28 kB, and displays longer texts badly. */
const maxLength = 4_000

const SuccessAnswer = z.object({ id: z.string().min(1) })
const ErrorAnswer = z.object({ error: z.object({ code: z.string() }) })

/**
 * Microsoft asks clients to repeat a request after 412, 502 and 504, as after 429.
 * https://learn.microsoft.com/microsoftteams/platform/bots/how-to/rate-limit
 */
const meanings = new Map<number, ErrorMeaning>([
  [401, { kind: 'transient', hint: 'The access token was refused. The next attempt fetches a new one.' }],
  [403, { kind: 'permanent', hint: 'The bot may not write in the conversation. Install its app in the team or chat.' }],
  [
    404,
    {
      kind: 'permanent',
      hint: 'The conversation does not exist. Check "to" and channels.msteams.baseUrl, its serviceUrl.',
    },
  ],
  [412, { kind: 'transient', hint: 'Another request changed the conversation at the same time.' }],
  [413, { kind: 'permanent', hint: 'The message is too large for Teams.' }],
  [502, { kind: 'transient', hint: 'The connector did not reach Teams.' }],
  [504, { kind: 'transient', hint: 'The connector did not reach Teams in time.' }],
])

const options = z.strictObject({
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
})
type Settings = ChannelSettings<typeof options>

export const msteamsChannel = defineChannel({
  name: 'msteams',
  about: 'Microsoft Teams, through a bot. `to`: a conversation id.',
  options,
  create: createMsTeamsChannel,
})

function createMsTeamsChannel(config: Settings, { clock, ...tools }: ChannelHost): ChannelParts {
  const tokens = createTeamsToken(config, { clock, ...tools })

  return {
    dedupes: false,
    whyNot: (to = config.to) => (readConversation(to) === undefined ? explainRecipient(to) : undefined),
    split: (written, format) =>
      splitMarkdown(written, { limit: maxLength, measure: (piece) => render(piece, teamsMarkdown, format).length }),
    async send({ to = config.to, text, format, signal }) {
      const conversation = readConversation(to)
      if (conversation === undefined) return { kind: 'permanent', detail: explainRecipient(to) }
      const access = await tokens.get()
      if (access.kind === 'failed') return access.failed
      const outcome = await sendJson({
        url: `${config.baseUrl}/v3/conversations/${encodeURIComponent(conversation)}/activities`,
        headers: { authorization: `Bearer ${access.token}` },
        body: { type: 'message', text: render(text, teamsMarkdown, format), textFormat: format },
        timeoutMs: config.timeoutMs,
        signal,
        ...tools,
      })
      if (outcome.kind === 'answer' && outcome.status === 401) tokens.drop(access.token)
      return toSendResult(outcome)
    },
    async probe() {
      const access = await tokens.get()
      if (access.kind === 'failed') return { ok: false, detail: access.failed.detail }
      return {
        ok: true,
        detail: 'Microsoft gave the bot an access token. Only a message shows whether it is installed.',
      }
    },
  }
}

function explainRecipient(to: string | undefined): string {
  return describeWrongRecipient('msteams', to, 'the id of a conversation with the bot in it, such as 19:…@thread.tacv2')
}

/**
 * A recipient is the id of a conversation, not of a person: a bot may open a conversation only where it is installed. The id goes into a URL,
 * so characters that change the path of a URL are not allowed.
 */
function readConversation(to = ''): string | undefined {
  const id = to.trim().replace(/^conversation:/i, '')
  return /^(?!\.{1,2}$|user:|https?:)[^\s/\\?#%]+$/i.test(id) ? id : undefined
}

function toSendResult(outcome: HttpOutcome): SendResult {
  const accepted = readSuccess(outcome, SuccessAnswer)
  return accepted === undefined ? readFailure(outcome) : { kind: 'sent', id: accepted.id }
}

const readFailure = createFailureReader({
  provider: 'Teams',
  schema: ErrorAnswer,
  readCode: ({ error }) => error.code,
  explain: ({ status }) => meanings.get(status),
})
