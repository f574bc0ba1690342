// Alerts: a name from a request is shown as it was written, and is no markup, link or mention in any channel.
import { Lexer, type Token } from 'marked'
import { describe, expect, test } from 'vitest'
import { createDiscordChannel } from '../../../src/channels/discord.ts'
import { createGitHubChannel } from '../../../src/channels/github.ts'
import { createGitLabChannel } from '../../../src/channels/gitlab.ts'
import { createIMessageChannel } from '../../../src/channels/imessage.ts'
import { createLinearChannel } from '../../../src/channels/linear.ts'
import { createMattermostChannel } from '../../../src/channels/mattermost.ts'
import { createMsTeamsChannel } from '../../../src/channels/msteams.ts'
import { createOwnChannel } from '../../../src/channels/own.ts'
import { createSignalChannel } from '../../../src/channels/signal.ts'
import { createSlackChannel } from '../../../src/channels/slack.ts'
import { createTelegramChannel } from '../../../src/channels/telegram.ts'
import { createWhatsAppChannel } from '../../../src/channels/whatsapp.ts'
import type { Channel } from '../../../src/model/channel.ts'
import { channelSections } from '../../../src/model/config/channels.ts'
import { toOutgoing } from './stage.ts'

const names = [
  '[renew](http://evil.example/x)',
  '![x](https://evil.example/x.png)',
  '<http://evil.example|renew> <!channel> <!here> <@U024BE7LH>',
  '@everyone @here @all @channel <@381870553235193857> </go:381870553235193857>',
  '<a href="http://evil.example">renew</a> &lt;b&gt; <at>Ada</at>',
  '**bold** _em_ ~~gone~~ `code` *b* #17 !18 GH-19',
  'http://evil.example/renew www.evil.example mailto:a@evil.example',
  'a\n# heading\n> quote\n- item\n1. one\n/close',
]

/** The bodies that the channel posts. */
async function post(create: (fetch: typeof globalThis.fetch) => Channel, to: string, text: string) {
  const bodies: Record<string, unknown>[] = []
  const fetch: typeof globalThis.fetch = async (url, init) => {
    // as: the channels post text
    const body = init?.body as string | undefined
    if (typeof body === 'string' && body.startsWith('{')) bodies.push(JSON.parse(body))
    return String(url).includes('oauth2')
      ? Response.json({ access_token: 'a', expires_in: 3_600 })
      : new Response('{}', { status: 200 })
  }
  const channel = create(fetch)
  for (const piece of channel.split(text, 'plain')) await channel.send(toOutgoing({ to, text: piece, format: 'plain' }))
  return bodies.at(-1) ?? {}
}

/** What a reader of Markdown sees, and the kinds of its markup. */
function readMarkdown(markdown: string): { seen: string; kinds: string[] } {
  const kinds: string[] = []
  const read = (tokens: readonly Token[]): string =>
    tokens
      .map((token) => {
        if (!['paragraph', 'text', 'escape', 'space'].includes(token.type)) kinds.push(token.type)
        return 'tokens' in token && token.tokens !== undefined
          ? read(token.tokens)
          : String('text' in token ? token.text : '')
      })
      .join('')
  return { seen: read(new Lexer({ gfm: true }).lex(markdown)), kinds }
}

const unbreak = (text: string) => text.replaceAll('\u200B', '')
const decodeXml = (text: string) => text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
const { discord, github, gitlab, imessage, linear, mattermost, msteams, signal, slack, telegram, whatsapp } =
  channelSections

/** No part is an address that a chat makes a link, or a mention. */
function expectNoLink(text: string): void {
  expect(text).not.toMatch(/https?:\/\/|www\.|mailto:\w/)
}

function expectNoMention(text: string): void {
  expectNoLink(text)
  expect(text).not.toMatch(/(?<![\p{L}\d])@\w|<[@!#/]/u)
}

describe.each(names)('an alert that names %j', (name) => {
  const text = `Hookloom: the hook "${name}" is parked.`

  test('is in Slack text that is no mrkdwn', async () => {
    const config = slack.unwrap().parse({ botToken: 't' })
    const body = await post((fetch) => createSlackChannel(config, { fetch }), 'C024BE91L', text)
    expect(body).toMatchObject({ mrkdwn: false, unfurl_links: false })
    expect(unbreak(decodeXml(String(body['text'])))).toBe(text)
    expect(body['text']).not.toMatch(/[<>]/)
    expectNoLink(String(body['text']))
  })

  test('is in Telegram text without entities', async () => {
    const config = telegram.unwrap().parse({ botToken: 't' })
    const body = await post((fetch) => createTelegramChannel(config, { fetch }), '42', text)
    expect(unbreak(decodeXml(String(body['text'])))).toBe(text)
    expect(body['text']).not.toMatch(/[<>]/)
    expectNoMention(decodeXml(String(body['text'])).replaceAll(/<(?=[@!#/])/g, ''))
  })

  test('is in Teams plain text', async () => {
    const config = msteams.unwrap().parse({ appId: 'a', appPassword: 'p', tenantId: 't' })
    const body = await post((fetch) => createMsTeamsChannel(config, { fetch }), '19:x@thread.tacv2', text)
    expect(body).toMatchObject({ textFormat: 'plain' })
    expect(unbreak(String(body['text']))).toBe(text)
    expectNoLink(String(body['text']))
  })

  const bots: [string, (fetch: typeof globalThis.fetch) => Channel, string, string][] = [
    [
      'discord',
      (fetch) => createDiscordChannel(discord.unwrap().parse({ botToken: 't' }), { fetch }),
      '381870553235193857',
      'content',
    ],
    [
      'mattermost',
      (fetch) =>
        createMattermostChannel(mattermost.unwrap().parse({ token: 't', baseUrl: 'https://chat.example' }), { fetch }),
      'abcdefghijklmnopqrstuvwxyz',
      'message',
    ],
    ['github', (fetch) => createGitHubChannel(github.unwrap().parse({ token: 't' }), { fetch }), 'a/b#1', 'body'],
    ['gitlab', (fetch) => createGitLabChannel(gitlab.unwrap().parse({ token: 't' }), { fetch }), 'a/b#1', 'body'],
    ['linear', (fetch) => createLinearChannel(linear.unwrap().parse({ apiKey: 't' }), { fetch }), 'ENG-1', 'body'],
  ]

  test.each(bots)('is in %s text without Markdown', async (channel, create, to, field) => {
    const body = await post(create, to, text)
    const input = (body['variables'] as { input: Record<string, unknown> } | undefined)?.input ?? body
    const markdown = String(input[field]).replace(/\n\n<!--.*-->$/s, '')
    const { seen, kinds } = readMarkdown(markdown)
    expect(kinds).toEqual([])
    expect(unbreak(decodeXml(seen))).toBe(text)
    expectNoMention(markdown.replaceAll('&lt;', ''))
    if (channel === 'discord') expect(body).toMatchObject({ allowed_mentions: { parse: [] } })
  })

  test('is in a channel of the operator Markdown that shows it as it is', async () => {
    const sent: { text: string; format: string }[] = []
    const definition = {
      send: (given: { text: string; format: string }) => (sent.push(given), { kind: 'sent' as const, id: '1' }),
    }
    const describeThrown = () => 'something'
    const own = { kind: 'sound' as const, name: 'x', definition, options: {}, hash: 'h', describeThrown }
    await post(() => createOwnChannel(own, undefined), 'x', text)
    expect(sent[0]?.format).toBe('markdown')
    expect(readMarkdown(sent[0]?.text ?? '').kinds).toEqual([])
  })

  test('is in Signal, iMessage and WhatsApp text without styles', async () => {
    const plain = [
      await post(
        (fetch) => createSignalChannel(signal.unwrap().parse({ baseUrl: 'http://s.example' }), { fetch }),
        '+15550100',
        text,
      ),
      await post(
        (fetch) =>
          createIMessageChannel(imessage.unwrap().parse({ baseUrl: 'http://b.example', password: 'p' }), { fetch }),
        'chat_guid:x',
        text,
      ),
      await post(
        (fetch) => createWhatsAppChannel(whatsapp.unwrap().parse({ phoneNumberId: '1', accessToken: 'a' }), { fetch }),
        '+15550100',
        text,
      ),
    ].map((body) => JSON.stringify(body))
    expect(plain[0]).not.toContain('textStyle')
    for (const body of plain) {
      expectNoLink(body)
      expect(unbreak(body)).toContain(JSON.stringify(text).slice(1, -1))
    }
    expect(plain[2]).not.toMatch(/(?<!\u200B)[*~`]/)
  })
})

test('a reply keeps its markup in the same channels', async () => {
  const config = slack.unwrap().parse({ botToken: 't' })
  const sent: string[] = []
  const fetch: typeof globalThis.fetch = async (_, init) => (sent.push(String(init?.body)), new Response('{}'))
  await createSlackChannel(config, { fetch }).send(toOutgoing({ to: 'C024BE91L', text: '**bold**' }))
  expect(JSON.parse(sent[0] ?? '')).toMatchObject({ text: '*bold*' })
  expect(sent[0]).not.toContain('mrkdwn')
})
