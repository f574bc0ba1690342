// The built-in channels, in the order in which messages and editors name them.
import type { ChannelNames, FullChannelDefinition } from '../../define.ts'
import { consoleChannel } from './console.ts'
import { discordChannel } from './discord.ts'
import { githubChannel } from './github.ts'
import { gitlabChannel } from './gitlab.ts'
import { imessageChannel } from './imessage.ts'
import { linearChannel } from './linear.ts'
import { matrixChannel } from './matrix.ts'
import { mattermostChannel } from './mattermost.ts'
import { msteamsChannel } from './msteams.ts'
import { signalChannel } from './signal.ts'
import { slackChannel } from './slack.ts'
import { telegramChannel } from './telegram.ts'
import { webhookChannel } from './webhook.ts'
import { whatsappChannel } from './whatsapp.ts'

/** The compiler asks for each name in `ChannelNames`. */
const byName: Readonly<Record<Exclude<keyof ChannelNames, 'last'>, FullChannelDefinition>> = {
  whatsapp: whatsappChannel,
  telegram: telegramChannel,
  discord: discordChannel,
  slack: slackChannel,
  mattermost: mattermostChannel,
  signal: signalChannel,
  imessage: imessageChannel,
  msteams: msteamsChannel,
  matrix: matrixChannel,
  github: githubChannel,
  gitlab: gitlabChannel,
  linear: linearChannel,
  webhook: webhookChannel,
  console: consoleChannel,
}

export const channels: readonly FullChannelDefinition[] = Object.values(byName)
