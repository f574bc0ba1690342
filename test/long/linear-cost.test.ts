// A sender must not be able to choose how long the gateway works on a text: four times the text must be about four times the work.
import { toStyledText } from '../../src/plugins/channels/signal.ts'
import { describe, expect, test } from 'vitest'
import { splitMarkdown } from '../../src/plugins/channels/shared/chunks.ts'
import { plainText, safeMarkdown, slackMrkdwn, telegramHtml } from '../../src/plugins/channels/shared/markup.ts'
import { render } from '../../src/plugins/channels/shared/markdown.ts'
import { toMail } from '../../src/plugins/sources/gmail/message.ts'
import { decodeWords } from '../../src/plugins/sources/shared/mail.ts'
import { tidyText, toVisibleText } from '../../src/plugins/sources/shared/html.ts'
import { openBody, parseBody } from '../../src/core/model/body.ts'
import type { BodySyntax } from '../../src/core/model/syntax.ts'
import { neutralise, toLine, wrapExternal } from '../../src/boundary/boundary.ts'
import { foldCodePoint } from '../../src/boundary/lookalikes.ts'
import { compileTemplate } from '../../src/core/mapping/template.ts'

/** The units of hostile texts. A unit is repeated until the text is long enough; the part before a bar comes only once, at the start. */
const hostile = {
  text: ['a', ' ', '\n', '\\', 'é', '\u0301', '\u200B', '👨‍👩‍👧', '\uD83D', '\uFDFA', '\u00A0', '\r\n'],
  markers: ['<', '<<<', '<|', '<|a', '[', '[INST', '<<<EXTERNAL_UNTRUSTED_CONTENT', '<|EXTERNALUNTRUSTEDCONTENT'],
  escapes: ['&', '&amp;', '&#', '\\u005c', '\\u003c', '<|\\', '<|&#38;', '\\u{|0', '&#|0', '<|\\ud83d'],
  html: ['<a>', '<div>', '<b>x', '<li>', '<ol><li>', '<blockquote>a', '<table><tr><td>', '<!--', '<p style="/*">', '<a href=x>a '],
  css: ['/*', ';', 'a:b;', 'display:x;', '(', '\\6 ', ' !important', 'font-size:|1', 'transform:|a(', 'font:|a ', 'clip-path:polygon(|0 '],
  markdown: ['*a', '__a', 'a_', '/*', '!', '[a](b)', '**a**', '~~a~~', '`a', '> ', '- a\n', '---\n', '|a|\n|-|\n', 'http://a.(', 'a@b', '[a]: b\n'],
  blocks: ['- | a\n', '- ||a|\n', '```\n|a', '```\n| ', '```\n|`', '> ```\n|> ', '```\n|\t', '. ', '<!--', 'a b.c@', 'http://|?!', '=\n'],
  words: ['=?', '=?a?b?', '=?utf-8?q?=C3?=', '=?a*', '?= ', '?=|  =?', 'charset=', 'charset|  ', '"', 'a;'],
  templates: ['{{', '}}', '{{a}}', '{{a|', '{{a | default: "', '|default:"', '.a', '[0]', "'"],
  bodies: ['&a=', 'a[b]=', '%41', '%', '+', '{"a":', '["', '\\"', '0', '-'],
} // prettier-ignore

const ignoreRefusal = (work: () => unknown) => {
  try {
    work()
  } catch {
    // a text that is refused costs time too
  }
}
const toPayload = (text: string, mimeType: string) => ({
  mimeType,
  body: { data: Buffer.from(text).toString('base64url') },
  headers: ['content-type', 'subject'].map((name) => ({ name, value: text })),
})
const readMail = (text: string, mimeType: string) =>
  toMail(
    { id: 'm', threadId: '', labelIds: [], snippet: text, internalDate: 0, payload: toPayload(text, mimeType) },
    { maxBytes: 20_000, includeBody: true },
  )
const split = (limit: number, markup: typeof plainText) => (text: string) =>
  splitMarkdown(text, { limit, measure: (piece) => render(piece, markup).length })
const parse = (syntax: BodySyntax) => (text: string) => ignoreRefusal(() => parseBody(text, syntax))

type Family = keyof typeof hostile
const works: [string, readonly Family[], (text: string) => unknown][] = [
  ['neutralise', ['text', 'markers', 'escapes'], neutralise],
  ['toLine', ['text', 'markers'], toLine],
  ['wrapExternal', ['markers'], (text) => wrapExternal({ text, source: text, from: text, subject: text, id: '0'.repeat(16) })],
  ['the look-alikes', ['text'], (text) => Array.from(text, (char) => foldCodePoint(char.codePointAt(0) ?? 0))],
  ['toVisibleText', ['text', 'escapes', 'html'], toVisibleText],
  ['a style', ['css'], (text) => toVisibleText(`<p style="${text.replaceAll('"', '')}">x</p>`)],
  ['tidyText', ['text'], tidyText],
  ['decodeWords', ['words'], decodeWords],
  ['a mail of plain text', ['text', 'words'], (text) => readMail(text, 'text/plain')],
  ['a mail of HTML', ['html'], (text) => readMail(text, 'text/html')],
  ['splitMarkdown', ['text', 'blocks'], (text) => splitMarkdown(text, { limit: 1_000 })],
  ['pieces for Telegram', ['markdown', 'blocks'], split(4_096, telegramHtml)],
  ['pieces for Slack', ['markdown', 'blocks'], split(8_000, slackMrkdwn)],
  ['render', ['text', 'markdown', 'blocks', 'html'], (text) => render(text, safeMarkdown)],
  ['toStyledText', ['markdown'], toStyledText],
  ['compileTemplate', ['templates'], (text) => ignoreRefusal(() => compileTemplate(text))],
  ['a rendered template', ['templates'], (text) => compileTemplate('{{a | truncate: 9}} {{a}}').render({ payload: () => ({ a: text }), headers: {}, query: {}, path: '', source: '', event: '', now: () => '' })],
  ['parseBody of JSON', ['bodies', 'escapes'], parse('json')],
  ['parseBody of a form', ['bodies'], parse('form')],
  ['a media type', ['bodies', 'words'], (text) => ignoreRefusal(() => openBody({ bytes: Buffer.of(), contentType: text, isProved: false }, { forms: true }))],
  ['the syntax of a proved body', ['bodies', 'words'], (text) => openBody({ bytes: Buffer.from(text), contentType: undefined, isProved: true }, { forms: true, plain: true, xml: true })],
] // prettier-ignore

const small = 16_000
const factor = 4

function repeatUnit(unit: string, length: number): string {
  const [, prefix = '', repeated = unit] = /^([^|]+)\|([^]+)$/.exec(unit) ?? []
  return prefix + repeated.repeat(Math.ceil(length / repeated.length))
}

/** The minimum of the processor time of several runs, in milliseconds. */
function measureCost(work: (text: string) => unknown, text: string, runs: number): number {
  const times = Array.from({ length: runs }, () => {
    const before = process.cpuUsage()
    work(text)
    return process.cpuUsage(before).user / 1_000
  })
  return Math.min(...times)
}

/** Whether four times the text causes less than ten times the work. Work of less than twenty milliseconds always counts as linear. */
function isLinear(work: (text: string) => unknown, unit: string): boolean {
  const [short, long] = [small, small * factor].map((length) => repeatUnit(unit, length))
  return measureCost(work, long ?? '', 2) < 10 * Math.max(measureCost(work, short ?? '', 3), 2)
}

describe('the work on a hostile text grows with its length, not with its square', () => {
  test.each(works)('the work of %s grows with the length of a hostile text', (_, families, work) => {
    const units = families.flatMap((family) => hostile[family])
    // up to three measurements, because other processes share the machine
    const slow = units.filter((unit) => !isLinear(work, unit) && !isLinear(work, unit) && !isLinear(work, unit))
    expect(slow).toEqual([])
  })
})
