// Texts of strangers and of operators: bodies, proofs, templates, mails, replies and configurations.
import { marked, type Token } from 'marked'
import type { SentValue } from '../../src/base/json.ts'
import { formatPlaceholder, type PathStep, unreadableNames } from '../../src/base/path-text.ts'
import { stringify, tryParseSentJson } from '../../src/base/sent-json.ts'
import { SentNumber } from '../../src/base/sent-number.ts'
import { toPrintable, toPrintableLine } from '../../src/base/text.ts'
import { openBody, parseBodyForCode, readPayload } from '../../src/core/model/body.ts'
import { convertBody } from '../../src/core/model/convert.ts'
import { Problem } from '../../src/core/model/problem.ts'
import type { SentBody } from '../../src/core/model/syntax.ts'
import { compileTemplate } from '../../src/core/mapping/template.ts'
import { parseConfig } from '../../src/gateway/config/config.ts'
import { type Markup, render } from '../../src/plugins/channels/shared/markdown.ts'
import {
  forgeMarkdown,
  safeMarkdown,
  slackMrkdwn,
  teamsMarkdown,
  telegramHtml,
} from '../../src/plugins/channels/shared/markup.ts'
import { parseMail } from '../../src/plugins/sources/imap/message.ts'
import { type Chance, describeFault, findThrown, type Target } from './mutations.ts'

const isProblem = (thrown: unknown) => thrown instanceof Problem && thrown.code !== 'internal-error'

const bodies = [
  '{"a":{"b":[1,2,{"c":"d"}]},"e":1.0}',
  'a=1&b%5B%5D=2&payload=%7B%22a%22%3A1%7D&_charset_=latin1',
  '--B\r\nContent-Disposition: form-data; name="x"; filename="a.txt"\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nhi\r\n--B\r\nContent-Disposition: form-data; name="payload"\r\n\r\n{"a":1}\r\n--B--\r\n',
  '<?xml version="1.0" encoding="latin1"?><a b="c">d</a>',
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}',
]
const bodyPieces = [
  '%', '%00', '%5B', '[', ']', '.', '&', '=', '+', '%ff', '\uFEFF', '__proto__', 'constructor', '{', '}', '"', '\\',
  '\\u', '\\ud800', ',', ':', '1e999', '-0', '--B', '--B--', '\r\n', '\r\n\r\n', 'filename="', 'charset=', '\u00ff\u00fe',
  'Content-Transfer-Encoding: base64', '<?xml encoding="utf-16"?>', '_charset_=utf-7&', 'charsets={"a":"utf-16"}',
] // prettier-ignore
const contentTypes = [
  undefined,
  'application/json',
  'application/json; charset=shift_jis',
  'application/x-www-form-urlencoded',
  'application/x-www-form-urlencoded;charset=utf-16',
  'multipart/form-data; boundary=B',
  'text/plain; charset=utf-16',
  'application/xml; charset=koi8-r',
  ';;;',
]

export const bodyTarget: Target = {
  name: 'bodies',
  cases: 3_000,
  tryOne(chance) {
    const { below, pick } = chance
    const text = chance.mutate(pick(bodies), bodyPieces, 6)
    const encoding = pick(['utf8', 'latin1', 'utf16le'] as const)
    const sent: SentBody = {
      bytes: Buffer.from(text, encoding),
      contentType: pick(contentTypes),
      isProved: below(2) === 0,
    }
    const jsonFields = pick([[], ['a', 'x'], ['__proto__']])
    const accepts = { forms: below(4) > 0, plain: below(2) > 0, xml: below(2) > 0, listJsonFields: () => jsonFields }
    const read = () => {
      const body = openBody({ ...sent, ...convertBody(sent, accepts) }, accepts)
      const written = stringify(readPayload(body))
      parseBodyForCode(body.bytes, body.syntax)
      if (stringify(tryParseSentJson(written)) !== written) throw new Error('the payload changed')
      if (Object.keys(Object.prototype).length > 0) throw new Error('a prototype changed')
    }
    return findThrown(read, { text, encoding, ...sent, bytes: undefined, jsonFields }, isProblem)
  },
}

const numbers = ['0', '-0', '1.0', '1E+3', '12345678901234567890', '1e400', '-1.50', '5e-324', '0.10000000000000001']
const strings = ['', 'a', 'a.b', '__proto__', 'toJSON', 'length', '-1', '\u2028', '😀', '\0', '"', '\\"', 'x y', '1e5']

/** A random JSON text without white space. */
function writeJson({ below, pick }: Chance, depth = 0): string {
  const isLeaf = depth > 3 || (depth > 0 && below(2) === 0)
  if (isLeaf) return pick([pick(numbers), JSON.stringify(pick(strings)), 'null', 'true'])
  const items = Array.from({ length: below(4) }, () => writeJson({ below, pick } as Chance, depth + 1))
  if (below(3) === 0) return `[${items.join()}]`
  const names = [...new Set(items.map(() => pick(strings)))]
  return `{${names.map((name, at) => `${JSON.stringify(name)}:${items[at]}`).join()}}`
}

const toScope = (payload: SentValue) => ({
  payload: () => payload,
  headers: {},
  query: {},
  path: '',
  source: undefined,
  event: undefined,
  now: () => '',
})

export const valueTarget: Target = {
  name: 'values of a payload',
  cases: 2_000,
  tryOne(chance) {
    const text = writeJson(chance)
    const payload = tryParseSentJson(text) ?? null
    const show = (template: string) => compileTemplate(template).render(toScope(payload))
    if (show('{{payload}}') !== text) return describeFault('{{payload}} is not what was sent', text)
    const visit = (value: SentValue, path: readonly PathStep[]): string | undefined => {
      if (path.some((step) => unreadableNames.has(String(step)))) return undefined
      const expected = typeof value === 'string' ? value : value === null ? '' : stringify(value)
      const placeholder = formatPlaceholder(path)
      if (show(`{{${placeholder}}}`) !== expected) return describeFault(`{{${placeholder}}} has another value`, text)
      if (typeof value !== 'object' || value === null || value instanceof SentNumber) return undefined
      const steps = Object.entries(value).map(
        ([key, item]) => [Array.isArray(value) ? Number(key) : key, item] as const,
      )
      return steps.map(([step, item]) => visit(item, [...path, step])).find((fault) => fault !== undefined)
    }
    return visit(payload, [])
  },
}

const templatePieces = [
  '{{', '}}', '|', '"', "'", '\\', '[', ']', '.', '[0]', "['a.b']", 'truncate: 3', 'default: "x"', 'payload', ' ', '\n',
  'headers.x', 'query["a"]', 'event', 'body', 'else', '#if', '-1', '99999999999999999999', '[*]', ':', '\\u0041', '\0',
] // prettier-ignore

export const templateTarget: Target = {
  name: 'templates',
  cases: 3_000,
  tryOne(chance) {
    const text = chance.mutate('{{a.b[0]["x"] | default: "n" | truncate: 3}} x {{payload}}', templatePieces, 6)
    const work = () => compileTemplate(text).render(toScope({ a: { b: [{ x: 'yy\ud800' }] } }))
    return findThrown(work, text, (thrown) => thrown instanceof Problem && thrown.code === 'config-invalid')
  },
}

const mail = `From: =?utf-8?B?w6k=?= <a@b.c>\r\nSubject: =?iso-8859-1?Q?a=E9_b?=\r\n =?utf-8?q?c?=\r\nMessage-ID: <1@x>\r\nContent-Type: multipart/mixed; boundary="B"\r\n\r\n--B\r\nContent-Type: multipart/alternative; boundary=C\r\n\r\n--C\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nhi=20=C3=A9=\r\n there\r\n--C\r\nContent-Type: text/html\r\n\r\n<style>.x{display:none}</style><p class=x>secret<p style="color:#fff">w<table><tr><td>1</table>&copy;\r\n--C--\r\n--B\r\nContent-Type: application/pdf; name*0*=utf-8'en'%c3%a9; name*1="x.pdf"\r\nContent-Disposition: attachment; filename*=utf-8''%e2%82%ac.pdf\r\nContent-Transfer-Encoding: base64\r\n\r\nJVBERi0=\r\n--B\r\nContent-Type: message/rfc822\r\n\r\nSubject: inner\r\n\r\nbody\r\n--B--\r\n`
const mailPieces = [
  '\r\n', '\n', ' ', ';', '"', '=', '=?utf-8?B?', '?=', '=?x?q?', '--B', '--C', 'boundary=', 'charset=utf-7', "''", '*0*=', '\0',
  'Content-Type: multipart/mixed; boundary=B\r\n', 'Content-Type: message/rfc822\r\n', 'charset=utf-16', '%ff', '(', '<', '>',
  'Content-Transfer-Encoding: base64\r\n', '<!--', '<style>', '</style>', '{', '@media', 'style="', '&#xffffff;', '<svg>', '\u00ff',
] // prettier-ignore

export const mailTarget: Target = {
  name: 'mails',
  cases: 800,
  async tryOne(chance) {
    const text = chance.mutate(mail, mailPieces, 6)
    const source = Buffer.from(text, 'latin1')
    const work = async () => {
      const read = await parseMail(
        { source, size: source.length, receivedAt: 0, labels: [] },
        { maxBytes: 20_000, includeBody: true },
      )
      if (!JSON.stringify(read).isWellFormed()) throw new Error('half a character')
    }
    return findThrown(work, text)
  },
}

const replies = [
  '**a** [b](https://c.d/e) `f`\n```js\ng\n```\n> h',
  '| a | b |\n|---|---|\n| c | d |',
  '1. a\n2. b\n   - c',
]
const replyPieces = [
  '<', '>', '&lt;', '&gt;', '&#60;', '`', '``', '```', '````', '~~~', '*', '_', '[', ']', '(', ')', '!', '![', '](', '][', ']:',
  '<!channel>', '<@U1>', '<at>x</at>', '@everyone', '@name', '&commat;', '\u200b', '\u202e', '\u001b[31m', '|', '\\', '\n', '\n\n',
  '> ', '# ', '- ', 'https://a.b/', '<https://a.b/>', 'tel:1', '<tel:1>', 'a@b.c', '"', '<a href="', '[x]: https://a.b "t"\n', '[x]',
  '/', 'close', '12', '&![#64](x);', '](x)',
] // prettier-ignore
const chats: readonly (readonly [string, Markup])[] = Object.entries({ safeMarkdown, teamsMarkdown, forgeMarkdown })
const safeTarget = /^(?:https?:\/\/|mailto:)/i

/** None if the lexer throws: it does at some quotes in lists, such as `1. a\n   >>>>>>>>>>>2. b\n   c`. */
function tryLex(markdown: string): Token[] {
  try {
    return marked.lexer(markdown, { gfm: true })
  } catch {
    return []
  }
}

/** What a reader of Markdown does with a text: its links and pictures, and the text that is shown as no code. */
function readMarkdown(markdown: string) {
  const tokens = tryLex(markdown)
  // GitLab reads a command at the start of a line, and none in code
  const paragraphs = tokens.map((token) => (token.type === 'paragraph' ? (token.tokens ?? []) : []))
  const lines = paragraphs.map((inline) => inline.map(({ type, raw }) => (type === 'codespan' ? '`' : raw)).join(''))
  const found = {
    targets: Array<string>(),
    pictures: 0,
    text: '',
    hasCommand: /^[ \t]*\/[a-z]/m.test(lines.join('\n')),
  }
  marked.walkTokens(tokens, (token: Token) => {
    if (token.type === 'link') found.targets.push(String(token['href']))
    if (token.type === 'image') found.pictures += 1
    if (token.type === 'text' && !('tokens' in token && token.tokens !== undefined)) found.text += ` ${token.raw} `
  })
  return found
}

/** `write`: the renderer. `markups`: those that a reader of Markdown reads. */
export function createReplyTarget(write: typeof render = render, markups = chats): Target {
  return {
    name: 'replies of an agent',
    cases: 1_500,
    tryOne(chance) {
      const reply = chance.mutate(chance.pick(replies), replyPieces, 10)
      for (const [name, markup] of markups) {
        const { targets, pictures, text, hasCommand } = readMarkdown(write(reply, markup))
        if (pictures > 0) return describeFault(`${name} shows a remote picture`, reply)
        if (!targets.every((target) => safeTarget.test(target)))
          return describeFault(`${name} has a link to ${targets.join()}`, reply)
        const outsideLinks = text.replaceAll(/https?:\S*|mailto:\S*/g, '')
        if (/@(?:everyone|name)/.test(outsideLinks.replaceAll(/\S*[\p{L}\p{N}]@\S*/gu, '')))
          return describeFault(`${name} mentions somebody`, reply)
        if (/&#?\w{1,40};/.test(outsideLinks.replaceAll('&lt;', '<')))
          return describeFault(`${name} has an entity`, reply)
        if (markup === forgeMarkdown && (hasCommand || /[#!]\d/.test(outsideLinks)))
          return describeFault(`${name} has a command or a reference`, reply)
      }
      const html = write(reply, telegramHtml).replaceAll(
        /<\/?(?:b|i|s|code|pre|blockquote|a)>|<a href="(?:https?|mailto):[^"<>]*">|<code class="language-[\w+#.-]*">/g,
        '',
      )
      if (/[<>]/.test(html)) return describeFault('a tag for Telegram', reply)
      const slack = write(reply, slackMrkdwn).replaceAll(/<(?:https?:\/\/|mailto:)[^<>|]*(?:\|[^<>|]*)?>/g, '')
      if (slack.includes('<')) return describeFault('a reference for Slack', reply)
      const shown = toPrintable(reply) + toPrintableLine(reply)
      return /(?![\t\n])\p{Cc}|[\u202a-\u202e\u2066-\u2069]/u.test(shown)
        ? describeFault('a control of a terminal', reply)
        : undefined
    },
  }
}

const config = `{
  // a comment
  "server": { "port": 0, "adminPort": 0, "trustedProxies": ["10.0.0.0/8"] },
  "gateway": { "token": "gateway-secret-0123456789abcdefgh" },
  "hooks": { "enabled": true, "token": "hook-secret-0123456789abcdefghij", "presets": ["github"], "mappings": [
    { "id": "m", "match": { "path": "a/b", "payload": { "a.b[0]": { "matches": "^x+" }, "n": { "gt": 3 } } }, "messageTemplate": "{{a}}", "flow": { "delay": "5s" }, "timeoutSeconds": 5 },
    { "match": { "path": "s", "any": [{ "event": "push" }] }, "verify": { "scheme": "generic-hmac", "secret": "abcdefghijklmnopqrstuv", "header": "x-s" }, "action": "wake", "textTemplate": "x", "retain": 5 } ] },
  "agents": { "defaults": { "heartbeat": { "every": "30m" } } },
  "channels": { "default": { "channel": "console" }, },
}`
const configPieces = [
  '{', '}', '[', ']', ',', ':', '"', '//', '/*', '*/', '\n', '${X}', '${', '$', 'null', '-1', '1e999', 'true', '""', '[]', '{}',
  '"__proto__": {"a": 1},', '"constructor": 1,', '\\', '\\u0000', '\0', '-5m', '9999999d', '(', '(a+)+$', '\\\\p{', '..', '\uFEFF', '\ud800',
] // prettier-ignore
const configValue = /(?<=: )(?:"(?:[^"\\]|\\.)*"|\d+|true|\[[^[\]]*\]|\{[^{}]*\})/g
const otherValues = [
  'null',
  '-1',
  '""',
  '[]',
  '{}',
  '"x"',
  '[null]',
  '{"a":1}',
  '1e400',
  '"\\u0000"',
  '{"__proto__":{}}',
  '"(a"',
  '[{}]',
]

export const configTarget: Target = {
  name: 'configurations',
  cases: 250,
  tryOne(chance) {
    const value = chance.pick([...config.matchAll(configValue)])
    const swapped =
      config.slice(0, value.index) + chance.pick(otherValues) + config.slice(value.index + value[0].length)
    const text = chance.below(2) === 0 ? swapped : chance.mutate(chance.pick([config, swapped]), configPieces, 3)
    return findThrown(() => {
      const { config: read, problems } = parseConfig(text, {})
      if (read === undefined && problems.every((problem) => problem.trim() === '')) throw new Error('no reason')
    }, text)
  },
}
