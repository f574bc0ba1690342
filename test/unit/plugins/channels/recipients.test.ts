// The valid recipients of each channel, and the reason for each refusal.
import { describe, expect, it } from 'vitest'
import { discordChannel } from '../../../../src/plugins/channels/discord.ts'
import { gitlabChannel } from '../../../../src/plugins/channels/gitlab.ts'
import { linearChannel } from '../../../../src/plugins/channels/linear.ts'
import { mattermostChannel } from '../../../../src/plugins/channels/mattermost.ts'
import { slackChannel } from '../../../../src/plugins/channels/slack.ts'
import { telegramChannel } from '../../../../src/plugins/channels/telegram.ts'
import type { Channel } from '../../../../src/model/channel.ts'
import { toOutgoing, openChannel, sectionOf } from './stage.ts'

const id26 = 'abcdefghijklmnopqrstuvwxyz'
const never: typeof fetch = async () => {
  throw new Error('a recipient that was refused was called')
}

const createTelegram = (config: object) =>
  openChannel(telegramChannel, sectionOf(telegramChannel).parse({ botToken: 't', ...config }), { fetch: never })
const createDiscord = (config: object) =>
  openChannel(discordChannel, sectionOf(discordChannel).parse({ botToken: 't', ...config }), { fetch: never })
const createSlack = (config: object) =>
  openChannel(slackChannel, sectionOf(slackChannel).parse({ botToken: 't', ...config }), { fetch: never })
const createMattermost = (config: object) =>
  openChannel(
    mattermostChannel,
    sectionOf(mattermostChannel).parse({ token: 't', baseUrl: 'https://chat.example', ...config }),
    {
      fetch: never,
    },
  )
const createGitLab = (config: object) =>
  openChannel(gitlabChannel, sectionOf(gitlabChannel).parse({ token: 't', ...config }), { fetch: never })
const createLinear = (config: object) =>
  openChannel(linearChannel, sectionOf(linearChannel).parse({ apiKey: 't', ...config }), { fetch: never })

type Row = [name: string, create: (config: object) => Channel, good: string[], bad: string[]]
const rows: Row[] = [
  [
    'telegram',
    createTelegram,
    ['42', '-1001234567890', '@announcements', '-100:topic:7'],
    ['Ada', '@a', '42:topic:x', '4 2', ''],
  ],
  [
    'discord',
    createDiscord,
    ['381870553235193857', 'channel:381870553235193857', 'user:381870553235193857'],
    ['#general', '42', 'user:ada', '381870553235193857/../../users/@me'],
  ],
  [
    'slack',
    createSlack,
    [
      'C024BE91L',
      'channel:C024BE91L',
      'G024BE91L',
      'D024BE91L',
      'user:U024BE91L',
      'C024BE91L:thread:1700000000.000001',
    ],
    [
      '#general',
      'U024BE91L',
      'channel:U024BE91L',
      'C024BE91L\n',
      'C024BE91L:thread:1',
      'user:U024BE91L:thread:1700000000.000001',
    ],
  ],
  [
    'mattermost',
    createMattermost,
    [id26, `channel:${id26}`, `user:${id26}`, '@ada.l-1_x'],
    ['town-square', '@ada/../x', `user:${id26}a`, '@'],
  ],
  [
    'gitlab',
    createGitLab,
    ['acme/app#17', 'acme/tools/my.app!9'],
    ['app#17', 'acme/app', 'acme/app#x', '../app#1', 'acme/..#1', 'acme/../app!1', 'acme//app#1', 'acme/app#1?x'],
  ],
  [
    'linear',
    createLinear,
    ['ENG-17', '539068e2-ae88-4d09-bd75-22eb4a59612f'],
    ['17', 'ENG', 'ENG-', '539068e2', 'https://linear.app/acme/issue/ENG-17'],
  ],
]

describe.each(rows)('recipients of %s', (name, create, good, bad) => {
  it.each(good)('the recipient "%s" is valid', (to) => {
    expect(create({}).whyNot(to)).toBeUndefined()
  })

  it.each(bad)('the recipient "%s" is refused, and the reason names the valid forms', async (to) => {
    const channel = create({})
    expect(channel.whyNot(to)).toMatch(new RegExp(`is not a recipient on ${name}: expected .*(id|number)`, 's'))
    expect(await channel.send(toOutgoing({ to }))).toEqual({ kind: 'permanent', detail: channel.whyNot(to) })
  })

  it('a message without a recipient is refused unless the configuration names one', () => {
    expect(create({}).whyNot(undefined)).toContain(`set channels.${name}.to`)
    expect(create({ to: good[0] }).whyNot(undefined)).toBeUndefined()
    expect(create({ to: good[0] }).to).toBe(good[0])
  })
})
