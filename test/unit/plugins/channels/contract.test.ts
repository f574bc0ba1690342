// The contract suite of `hookloom/testing`: the built-in channels keep all promises, and a channel that breaks one is found.
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineChannel, type SendResult } from '../../../../src/define.ts'
import { channels } from '../../../../src/plugins/channels/index.ts'
import { type ChannelTrial, checkChannel } from '../../../../src/testing.ts'

/** The options of each channel, a recipient, and the body of the answer that accepts a message. */
const accounts: Readonly<Record<string, { options?: object; to?: string; body?: unknown }>> = {
  whatsapp: {
    options: { accessToken: 'tk_0123456789', phoneNumberId: '1066' },
    to: '+4915112345678',
    body: { messages: [{ id: 'wamid.1' }] },
  },
  telegram: {
    options: { botToken: '7:tk_0123456789' },
    to: '-1001',
    body: { ok: true, result: { message_id: 7 } },
  },
  discord: { options: { botToken: 'tk_0123456789' }, to: '381870553235193857', body: { id: '7' } },
  slack: { options: { botToken: 'tk_0123456789' }, to: 'C024BE91L', body: { ok: true, ts: '1.2' } },
  mattermost: {
    options: { token: 'tk_0123456789', baseUrl: 'https://chat.test' },
    to: '4yg6gfz8ifdrjyhb8ix5xqc6nh',
    body: { id: 'p1' },
  },
  signal: { to: '+4915112345678', body: { jsonrpc: '2.0', id: '1', result: { timestamp: 7 } } },
  imessage: {
    options: { password: 'tk_0123456789', baseUrl: 'http://mac.test:1234' },
    to: 'chat_guid:iMessage;-;ada@example.com',
    body: { data: { guid: 'g-1' } },
  },
  msteams: {
    options: { appId: 'a-0123456789', appPassword: 'tk_0123456789' },
    to: '19:abc@thread.tacv2',
    body: { id: '7', access_token: 'at_0123456789', expires_in: 3_600 },
  },
  matrix: {
    options: { accessToken: 'tk_0123456789', baseUrl: 'https://matrix.test' },
    to: '!room:matrix.test',
    body: { event_id: '$7' },
  },
  github: { options: { token: 'tk_0123456789' }, to: 'acme/app#17', body: { id: 7 } },
  gitlab: { options: { token: 'tk_0123456789' }, to: 'acme/app#17', body: { id: 7 } },
  linear: {
    options: { apiKey: 'tk_0123456789' },
    to: 'ENG-17',
    body: { data: { commentCreate: { comment: { id: 'c-1' } } } },
  },
  webhook: {
    options: { endpoints: { pier: { url: 'https://pier.test/', secret: 'a-secret-of-the-pier' } } },
    to: 'pier',
  },
  console: {},
}

test.each(channels)('the channel $name keeps the promises of a channel', async (definition) => {
  const { options = {}, to, body = {} } = accounts[definition.name] ?? {}
  const trial: ChannelTrial = { options, respond: () => Response.json(body), ...(to !== undefined && { to }) }
  expect(await checkChannel(definition, trial)).toEqual([])
})

const url = 'https://pier.test/'
type Post = (text: string, signal: AbortSignal) => Promise<SendResult>

const good: Post = async (text, signal) => {
  const { ok, status } = await fetch(url, { method: 'POST', body: text, signal })
  if (ok) return { kind: 'sent', id: '7' }
  return { kind: status === 429 ? 'rate-limited' : 'ambiguous', detail: `The pier answered ${status}.` }
}

function check(post: Post, split = (whole: string): string[] => [whole]): Promise<string[]> {
  const definition = defineChannel({
    name: 'pier',
    about: 'The pier.',
    options: z.strictObject({ token: z.string() }),
    create: () => ({ dedupes: false, whyNot: () => undefined, split, send: ({ text, signal }) => post(text, signal) }),
  })
  return checkChannel(definition, { options: { token: 'tk_0123456789' }, respond: () => new Response() })
}

const failing =
  (detail: (text: string) => string): Post =>
  async (text, signal) => {
    const { ok, status } = await fetch(url, { method: 'POST', body: text, signal })
    return ok
      ? { kind: 'sent', id: '7' }
      : { kind: status === 429 ? 'rate-limited' : 'ambiguous', detail: detail(text) }
  }

test('a channel that keeps all promises breaks none, with its own split and without', async () => {
  expect(await check(good)).toEqual([])
  const simple = defineChannel({ name: 'pier', send: ({ text, signal }) => good(text, signal) })
  expect(await checkChannel(simple, { options: {}, respond: () => new Response() })).toEqual([])
})

test.each<[what: string, post: Post, broken: string]>([
  [
    'takes every answer for a success',
    async (text, signal) => ({
      kind: 'sent',
      id: String((await fetch(url, { body: text, method: 'POST', signal })).status),
    }),
    'Answer 500: the message is sent.',
  ],
  [
    'posts nothing',
    async () => ({ kind: 'permanent', detail: 'No.' }),
    'A message that the provider accepts is permanent',
  ],
  ['quotes the text', failing((text) => `No: ${text}`), 'Answer 401: the detail has the text of the message.'],
  ['shows its token', failing(() => 'tk_0123456789 is wrong'), 'Answer 401: the detail has a secret.'],
  ['ignores its signal', (text) => good(text, new AbortController().signal), 'Aborted attempt: the request goes on'],
  [
    'takes a broken connection for a failure before the request',
    (text, signal) => good(text, signal).catch(() => ({ kind: 'transient', detail: 'No.' })),
    'Connection that breaks after the request: the message is transient',
  ],
  [
    'throws for an answer',
    async (text, signal) => {
      const result = await good(text, signal)
      if (result.kind === 'ambiguous') throw new TypeError('no')
      return result
    },
    'Answer 401: send throws TypeError: no.',
  ],
])('a channel that %s is found', async (_, post, broken) => {
  expect(await check(post)).toContainEqual(expect.stringContaining(broken))
})

test.each<[what: string, split: (whole: string) => string[], broken: string]>([
  ['returns nothing for an empty text', (whole) => (whole === '' ? [] : [whole]), 'split returns no piece.'],
  ['drops the end', (whole) => [whole.slice(0, 500)], 'split loses characters.'],
  ['differs', (whole) => [whole, String(Math.random())], 'split returns other pieces for the same text.'],
  ['cuts by units', (whole) => whole.split(''), 'split cuts a character in two.'],
])('a split that %s is found', async (_, split, broken) => {
  expect(await check(good, split)).toContain(broken)
})
