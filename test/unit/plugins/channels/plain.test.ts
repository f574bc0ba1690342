// Alerts: a name from a request is shown as it was written, and is no markup, link or mention in any channel.
import { Lexer, type Token } from 'marked'
import { describe, expect, test } from 'vitest'
import { discordChannel } from '../../../../src/plugins/channels/discord.ts'
import { githubChannel } from '../../../../src/plugins/channels/github.ts'
import { gitlabChannel } from '../../../../src/plugins/channels/gitlab.ts'
import { imessageChannel } from '../../../../src/plugins/channels/imessage.ts'
import { linearChannel } from '../../../../src/plugins/channels/linear.ts'
import { mattermostChannel } from '../../../../src/plugins/channels/mattermost.ts'
import { msteamsChannel } from '../../../../src/plugins/channels/msteams.ts'
import { createOwnChannel } from '../../../../src/plugins/channels/shared/own.ts'
import { signalChannel } from '../../../../src/plugins/channels/signal.ts'
import { slackChannel } from '../../../../src/plugins/channels/slack.ts'
import { telegramChannel } from '../../../../src/plugins/channels/telegram.ts'
import { whatsappChannel } from '../../../../src/plugins/channels/whatsapp.ts'
import type { Channel } from '../../../../src/model/channel.ts'
import { toOutgoing, openChannel, sectionOf } from './stage.ts'

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
    const config = sectionOf(slackChannel).parse({ botToken: 't' })
    const body = await post((fetch) => openChannel(slackChannel, config, { fetch }), 'C024BE91L', text)
    expect(body).toMatchObject({ mrkdwn: false, unfurl_links: false })
    expect(unbreak(decodeXml(String(body['text'])))).toBe(text)
    expect(body['text']).not.toMatch(/[<>]/)
    expectNoLink(String(body['text']))
  })

  test('is in Telegram text without entities', async () => {
    const config = sectionOf(telegramChannel).parse({ botToken: 't' })
    const body = await post((fetch) => openChannel(telegramChannel, config, { fetch }), '42', text)
    expect(unbreak(decodeXml(String(body['text'])))).toBe(text)
    expect(body['text']).not.toMatch(/[<>]/)
    expectNoMention(decodeXml(String(body['text'])).replaceAll(/<(?=[@!#/])/g, ''))
  })

  test('is in Teams plain text', async () => {
    const config = sectionOf(msteamsChannel).parse({ appId: 'a', appPassword: 'p', tenantId: 't' })
    const body = await post((fetch) => openChannel(msteamsChannel, config, { fetch }), '19:x@thread.tacv2', text)
    expect(body).toMatchObject({ textFormat: 'plain' })
    expect(unbreak(String(body['text']))).toBe(text)
    expectNoLink(String(body['text']))
  })

  const bots: [string, (fetch: typeof globalThis.fetch) => Channel, string, string][] = [
    [
      'discord',
      (fetch) => openChannel(discordChannel, sectionOf(discordChannel).parse({ botToken: 't' }), { fetch }),
      '381870553235193857',
      'content',
    ],
    [
      'mattermost',
      (fetch) =>
        openChannel(
          mattermostChannel,
          sectionOf(mattermostChannel).parse({ token: 't', baseUrl: 'https://chat.example' }),
          {
            fetch,
          },
        ),
      'abcdefghijklmnopqrstuvwxyz',
      'message',
    ],
    [
      'github',
      (fetch) => openChannel(githubChannel, sectionOf(githubChannel).parse({ token: 't' }), { fetch }),
      'a/b#1',
      'body',
    ],
    [
      'gitlab',
      (fetch) => openChannel(gitlabChannel, sectionOf(gitlabChannel).parse({ token: 't' }), { fetch }),
      'a/b#1',
      'body',
    ],
    [
      'linear',
      (fetch) => openChannel(linearChannel, sectionOf(linearChannel).parse({ apiKey: 't' }), { fetch }),
      'ENG-1',
      'body',
    ],
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
    const own = {
      kind: 'sound' as const,
      id: 'own:x',
      label: 'hooks/channels/x',
      definition,
      options: {},
      hash: 'h',
      describeThrown,
    }
    await post(() => createOwnChannel(own, {}, { fetch: globalThis.fetch, clock: Date.now, write() {} }), 'x', text)
    expect(sent[0]?.format).toBe('markdown')
    expect(readMarkdown(sent[0]?.text ?? '').kinds).toEqual([])
  })

  test('is in Signal, iMessage and WhatsApp text without styles', async () => {
    const plain = [
      await post(
        (fetch) =>
          openChannel(signalChannel, sectionOf(signalChannel).parse({ baseUrl: 'http://s.example' }), { fetch }),
        '+15550100',
        text,
      ),
      await post(
        (fetch) =>
          openChannel(
            imessageChannel,
            sectionOf(imessageChannel).parse({ baseUrl: 'http://b.example', password: 'p' }),
            {
              fetch,
            },
          ),
        'chat_guid:x',
        text,
      ),
      await post(
        (fetch) =>
          openChannel(whatsappChannel, sectionOf(whatsappChannel).parse({ phoneNumberId: '1', accessToken: 'a' }), {
            fetch,
          }),
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
  const config = sectionOf(slackChannel).parse({ botToken: 't' })
  const sent: string[] = []
  const fetch: typeof globalThis.fetch = async (_, init) => (sent.push(String(init?.body)), new Response('{}'))
  await openChannel(slackChannel, config, { fetch }).send(toOutgoing({ to: 'C024BE91L', text: '**bold**' }))
  expect(JSON.parse(sent[0] ?? '')).toMatchObject({ text: '*bold*' })
  expect(sent[0]).not.toContain('mrkdwn')
})
