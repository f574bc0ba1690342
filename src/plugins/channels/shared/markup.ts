// The markup of each channel for bold, code and links. No text can mention a user.
import { toSafeHref } from './links.ts'
import { escapeMarkdown, type Markup } from './markdown.ts'

/**
 * Breaks mentions: puts a zero-width space between an @ and the name after it. An @ at the end of the text also gets one, because the name may be
 * in the next part of the Markdown: `\@name`, `@**name**`. So does the second @ of a word: a reader that makes a link of the address in `a@b.c@name` reads
 * `@name` after it.
 */
function breakMentions(text: string): string {
  return text.replace(/@(?<=(?:^|[^\p{L}\p{N}]|@[^\s@]*)@)(?=\\?[\p{L}\p{N}_]|$)/gu, '@\u200B')
}

/** Escapes what begins a heading, a quote or a list in Markdown. */
function escapeLineStarts(markdown: string): string {
  return markdown.replace(/^([ \t]*)([#>+=-]|\d+(?=[.)]))/gm, (_, indent: string, start: string) =>
    /\d/.test(start) ? `${indent}${start}\\` : `${indent}\\${start}`,
  )
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

function quoteLines(inner: string): string {
  return inner.replace(/^/gm, '> ')
}

/** Breaks each run of backticks in code that may end it. Chats do not support longer fences, and some end a block inside a longer run. */
function breakTicks(code: string, run = /`{3,}/g): string {
  return code.replace(run, (ticks) => [...ticks].join('\u200B'))
}

/** The text, then the address, unless they are the same. */
function appendAddress(inner: string, address: string): string {
  return toSafeHref(inner) === address || `mailto:${inner}` === address ? inner : `${inner} (${address})`
}

/** Matches what no backslash escapes: an even number of backslashes is before it. */
function unescaped({ source }: RegExp): RegExp {
  return new RegExp(String.raw`(?<!(?<!\\)(?:\\\\)*\\)${source}`, 'g')
}

/** Plain text, without markup. */
export const plainText: Markup = {
  text: (plain) => plain,
  strong: (inner) => inner,
  emphasis: (inner) => inner,
  strike: (inner) => inner,
  code: (plain) => plain,
  block: (plain) => plain,
  link: appendAddress,
  heading: (inner) => inner,
  quote: quoteLines,
  bullet: '•',
  rule: '———',
}

/** core.telegram.org/bots/api#html-style. Quotes do not nest there. */
export const telegramHtml: Markup = {
  text: (plain) => escapeXml(breakMentions(plain)),
  strong: (inner) => `<b>${inner}</b>`,
  emphasis: (inner) => `<i>${inner}</i>`,
  strike: (inner) => `<s>${inner}</s>`,
  code: (plain) => `<code>${escapeXml(plain)}</code>`,
  block: (plain, language) =>
    language === ''
      ? `<pre>${escapeXml(plain)}</pre>`
      : `<pre><code class="language-${language}">${escapeXml(plain)}</code></pre>`,
  link: (inner, address) => `<a href="${escapeXml(address)}">${inner}</a>`,
  heading: (inner) => `<b>${inner}</b>`,
  // text is escaped, so only tags of this file are active
  quote: (inner) => `<blockquote>${inner.replace(/<\/?blockquote>/g, '')}</blockquote>`,
  bullet: '•',
  rule: '———',
}

/** docs.slack.dev, "Formatting message text": the three escapes keep <!channel> and <@U…> from becoming mentions. */
export const slackMrkdwn: Markup = {
  text: (plain) => escapeXml(plain),
  strong: (inner) => `*${inner}*`,
  emphasis: (inner) => `_${inner}_`,
  strike: (inner) => `~${inner}~`,
  code: (plain) => (plain.includes('`') ? escapeXml(plain) : `\`${escapeXml(plain)}\``),
  block: (plain) => `\`\`\`\n${escapeXml(breakTicks(plain))}\n\`\`\``,
  link: (inner, address) => `<${escapeXml(address)}|${inner.replace(/[\n|]/g, ' ')}>`,
  heading: (inner) => `*${inner.replaceAll('*', '')}*`,
  quote: quoteLines,
  bullet: '•',
  rule: '———',
}

/** faq.whatsapp.com, "How to format your messages". WhatsApp turns addresses into links itself. */
export const whatsappText: Markup = {
  ...plainText,
  // WhatsApp has no escape
  plain: (text) => text.replace(/[*_~`]/g, '\u200B$&\u200B'),
  strong: (inner) => `*${inner}*`,
  emphasis: (inner) => `_${inner}_`,
  strike: (inner) => `~${inner}~`,
  code: (plain) => (plain.includes('`') ? plain : `\`${plain}\``),
  block: (plain) => `\`\`\`${breakTicks(plain)}\`\`\``,
  heading: (inner) => `*${inner.replaceAll('*', '')}*`,
}

/** Markdown without active parts: no mentions, no remote pictures, no links except to http, https and mailto. */
export const safeMarkdown: Markup = {
  plain: (text) => escapeLineStarts(safeMarkdown.text(text).replaceAll('<', '\\<')),
  text: (plain, source = escapeMarkdown(plain)) =>
    breakMentions(source)
      .replaceAll('![', '!\u200B[')
      // a text has no links and no code: with what is written after it, it would become a link that was not checked, or end code
      .replace(unescaped(/\[(?![^[\]]*\])/), '\\[')
      .replace(unescaped(/\](?=[(:])/), ']\u200B')
      .replace(unescaped(/`/), '\\`')
      // the chat would decode an entity that was not checked
      .replace(/&(?=#?\w{1,40};)/g, '&\u200B')
      // an address, and Discord's syntax: <@id>, <#id>, </command:id>, <t:time>, <id:guide>, <:emoji:id>, <a:emoji:id>
      .replace(/<(?=[@#/:]|[a-z][a-z\d+.-]*(?::|$)|$)/gi, '<\u200B'),
  strong: (inner) => `**${inner}**`,
  emphasis: (inner) => `*${inner}*`,
  strike: (inner) => `~~${inner}~~`,
  code: (plain) => (plain.includes('`') ? `\`\` ${breakTicks(plain, /`{2,}/g)} \`\`` : `\`${plain}\``),
  block: (plain, language) => `\`\`\`${language}\n${breakTicks(plain)}\n\`\`\``,
  link: (inner, address) => {
    // an @ is encoded, because the part after it could be read as the name in a mention
    const target = address.startsWith('mailto:') ? address : address.replace(/[()@]/g, encodePercent)
    return toSafeHref(inner.replaceAll('\u200B', '')) === address ? `<${target}>` : `[${inner}](<${target}>)`
  },
  heading: (inner, depth) => `${'#'.repeat(Math.min(depth, 3))} ${inner}`,
  quote: quoteLines,
  bullet: '-',
  rule: '---',
}

/** Microsoft Teams reads HTML tags in Markdown, also <at>, which makes a mention. */
export const teamsMarkdown: Markup = {
  ...safeMarkdown,
  // sent as plain text
  plain: breakMentions,
  text: (plain, source) => safeMarkdown.text(plain, source).replaceAll('<', '&lt;'),
  // Teams documents no <…> around an address
  link: (inner, address) => `[${inner}](${address.replace(/[()<>]/g, encodePercent)})`,
}

/**
 * The markup of GitHub, GitLab and Linear. Tags are shown as text. No text refers to another issue, because that issue would show the
 * reference. No line is a command of GitLab (https://docs.gitlab.com/user/project/quick_actions/).
 */
export const forgeMarkdown: Markup = {
  ...safeMarkdown,
  plain: (text) => escapeLineStarts(forgeMarkdown.text(text)),
  text: (plain, source) =>
    safeMarkdown
      .text(plain, source)
      .replaceAll('<', '&lt;')
      .replace(/(?<=[#!&]|\bGH-)(?=\d)/gi, '\u200B')
      .replace(/^(?=[ \t]*\/[a-z])/gim, '\u200B'),
}

function encodePercent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}
