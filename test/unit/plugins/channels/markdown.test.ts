// A reply in the markup of each channel. The text of an attacker is shown and has no effect.
import { toStyledText } from '../../../../src/plugins/channels/signal.ts'
import { Lexer, marked } from 'marked'
import { describe, expect, it } from 'vitest'
import { splitMarkdown } from '../../../../src/plugins/channels/shared/chunks.ts'
import {
  forgeMarkdown,
  plainText,
  safeMarkdown,
  slackMrkdwn,
  teamsMarkdown,
  telegramHtml,
  whatsappText,
} from '../../../../src/plugins/channels/shared/markup.ts'
import { type Markup, render } from '../../../../src/plugins/channels/shared/markdown.ts'

const markups: [string, Markup][] = Object.entries({
  plainText,
  safeMarkdown,
  slackMrkdwn,
  teamsMarkdown,
  telegramHtml,
  whatsappText,
})

const reply = `## Build **17**

It _passed_, ~~slowly~~: \`a<b\`, see [the log](https://ci.example.com/1).

- [x] lint
- tests
  - unit

> Well done.

\`\`\`ts
if (a < b) go()
\`\`\``

describe('a reply', () => {
  it('a reply becomes HTML for Telegram', () => {
    expect(render(reply, telegramHtml)).toBe(`<b>Build <b>17</b></b>

It <i>passed</i>, <s>slowly</s>: <code>a&lt;b</code>, see <a href="https://ci.example.com/1">the log</a>.

• [x] lint
• tests
  • unit

<blockquote>Well done.</blockquote>

<pre><code class="language-ts">if (a &lt; b) go()</code></pre>`)
  })

  it('a reply becomes mrkdwn for Slack', () => {
    expect(render(reply, slackMrkdwn)).toBe(`*Build 17*

It _passed_, ~slowly~: \`a&lt;b\`, see <https://ci.example.com/1|the log>.

• [x] lint
• tests
  • unit

> Well done.

\`\`\`
if (a &lt; b) go()
\`\`\``)
  })

  it('a reply stays Markdown for a channel that reads Markdown', () => {
    expect(render(reply, safeMarkdown)).toBe(
      reply.replace('_passed_', '*passed*').replace('(https://ci.example.com/1)', '(<https://ci.example.com/1>)'),
    )
  })

  it('a reply becomes text with a little markup for WhatsApp, and plain text for a channel without markup', () => {
    expect(render(reply, whatsappText)).toContain('*Build 17*\n\nIt _passed_, ~slowly~: `a<b`')
    expect(render(reply, plainText)).toContain('It passed, slowly: a<b, see the log (https://ci.example.com/1).')
  })

  it('a reply becomes text with style ranges for Signal', () => {
    const { text, ranges } = toStyledText('A **bold *and* wide** `x` 👍 ~~gone~~')
    expect(text).toBe('A bold and wide x 👍 gone')
    expect(ranges.map(({ start, length, style }) => [text.slice(start, start + length), style])).toEqual([
      ['and', 'ITALIC'],
      ['bold and wide', 'BOLD'],
      ['x', 'MONOSPACE'],
      ['gone', 'STRIKETHROUGH'],
    ])
  })

  it('the numbered list, the rule and the table of a reply stay readable', () => {
    expect(render('3. three\n4. four\n\n---\n\n| a | b |\n|---|---|\n| 1 | 2 |', telegramHtml)).toBe(
      '3. three\n4. four\n\n———\n\na | b\n1 | 2',
    )
  })
})

describe('a hostile reply', () => {
  it.each(markups)('the links of a reply lead only to http, https and mail (%s)', (_name, markup) => {
    const text =
      '[a](javascript:alert(1)) [b](tg://user?id=1) [c](data:text/html,x) ![d](file:///etc/passwd) [e](slack://x)'
    expect(render(text, markup)).toBe(markup.text('a b c d e', 'a b c d e'))
  })

  it.each(markups)(
    'a link with a user name in its address is removed, and a link with another address as its text shows its target (%s)',
    (_name, markup) => {
      expect(render('[x](https://bank.example@evil.example/)', markup)).toBe('x')
      const shown = render('[https://bank.example/login](https://evil.example/)', markup)
      expect(shown).toMatch(/^https:\/\/bank\.example\/login \(.*https:\/\/evil\.example\/.*\)$/)
    },
  )

  it('a picture becomes a link, so that no chat loads it', () => {
    const text = '![x](https://evil.example/?q=secret)'
    for (const [, markup] of markups) expect(render(text, markup)).not.toContain('![')
    for (const markup of [safeMarkdown, teamsMarkdown]) {
      expect(render(`<div>\n${text}\n</div>`, markup)).not.toMatch(/(?<!\\)!\[/)
      expect(render(`!\\[x](https://evil.example/) ![x](u =1x1)`, markup)).not.toMatch(/(?<!\\)!\[/)
    }
  })

  it('HTML in a reply is shown as text, escaped for chats that read tags', () => {
    const text = 'a <script>x()</script> <a href="tg://user?id=1">b</a>'
    expect(render(text, telegramHtml)).not.toMatch(/<[^/]/)
    expect(render(text, slackMrkdwn)).not.toContain('<')
    expect(render('<at>Ada</at> <b>', teamsMarkdown)).not.toContain('<')
    expect(render(text, plainText)).toBe(text)
  })

  it('a hostile reply mentions no person or group', () => {
    const text = 'Hi @everyone, @ada, (@here) <@U024BE7LH> <!channel> <@&42> <#7>, mail ada@example.com'
    expect(render(text, slackMrkdwn)).not.toMatch(/<[@!#]/)
    for (const markup of [safeMarkdown, telegramHtml]) {
      expect(render(text, markup)).not.toMatch(/(?<![a-z])@[a-z]|<[@#]/)
      expect(render(text, markup)).toContain('ada@example.com')
    }
    for (const markup of [safeMarkdown, teamsMarkdown, telegramHtml]) {
      for (const split of [
        '&commat;_ada',
        '\\@everyone',
        '@**everyone**',
        '@_everyone_',
        '@[everyone](https://example.com)',
        // a reader that makes a link of the address leaves the name
        'ada@example.com@everyone',
      ]) {
        expect(render(split, markup)).toContain('@\u200B')
      }
    }
    expect(render('`npm i @scope/name`', safeMarkdown)).toBe('`npm i @scope/name`')
  })

  it.each([
    ['[b]![(jav](x)ascript:y)', safeMarkdown, '](jav'],
    ['[b![\\\\](x)](javascript:y)', safeMarkdown, '](jav'],
    ['&![#64](x);everyone', safeMarkdown, '&#64;'],
    ['/![close](x)', forgeMarkdown, /^\/close/],
    ['see #![12](x)', forgeMarkdown, '#12'],
    ['<https:>//a.b/>``<https://a.b/><javascript:x>``', safeMarkdown, 'https://a.b/>`'],
    ['https:![//bank.example](x)@evil.example', safeMarkdown, 'bank.example@evil'],
  ])('no part of %j becomes active together with the text of a picture', (reply, markup, active) => {
    expect(render(reply, markup)).not.toMatch(active)
  })

  it('a code block cannot be ended by the code in it', () => {
    const text = '~~~\na\n```\n<!channel> @everyone\n~~~'
    for (const markup of [slackMrkdwn, safeMarkdown, whatsappText]) {
      expect(render(text, markup).match(/```/g)).toHaveLength(2)
    }
  })

  it('code cannot be ended by any number of backticks in it', () => {
    for (const ticks of [3, 4, 5, 6, 7]) {
      const [inside, fence] = ['`'.repeat(ticks), '`'.repeat(ticks + 1)]
      for (const markup of [safeMarkdown, teamsMarkdown, forgeMarkdown]) {
        const span = render(`${fence} a${inside} @everyone ![x](https://x.example/y) ${fence}`, markup)
        expect(span.match(/``+/g)).toEqual(['``', '``'])
      }
      for (const markup of [slackMrkdwn, safeMarkdown, whatsappText]) {
        expect(render(`~~~\na${inside}\n[x](https://x.example)\n~~~`, markup).match(/```+/g)).toEqual(['```', '```'])
      }
    }
  })

  it('a backtick in a text ends no code after it', () => {
    for (const markup of [safeMarkdown, teamsMarkdown, forgeMarkdown]) {
      const html = String(marked.parse(render('` ```@everyone <@1>```', markup)))
      expect(html.replace(/<code>.*<\/code>/, '')).not.toContain('@')
    }
  })

  it.each([
    '!![x](https://x.example/y)',
    '!https://x.example/y',
    'a!<https://x.example/y>',
    '!![](https://x.example/y)',
  ])('an exclamation mark before a link makes no picture: %s', (text) => {
    for (const markup of [safeMarkdown, teamsMarkdown, forgeMarkdown]) {
      expect(render(text, markup)).toContain('https://x.example/y')
      expect(marked.parse(render(text, markup))).not.toContain('<img')
    }
  })

  it.each([
    '[bank.example](<//x.example/https://y.example)',
    '* [x](hthttps://y.example/tps:/z',
    '<<steam://run/1>>',
    '<<tel:1>>',
    '<h<tel:1>x>',
    '&lt;tel:1&gt;',
    '[x]: <a>b</a>\n[bank.example]: //x.example\n\n[bank.example]',
  ])('text around a link makes no other link: %s', (text) => {
    for (const markup of [safeMarkdown, teamsMarkdown, forgeMarkdown]) {
      const html = String(marked.parse(render(text, markup)))
      const targets = [...html.matchAll(/href="([^"]*)"/g)].map(([, target]) => target)
      expect(targets.filter((target) => target?.startsWith('https://y.example/') !== true)).toEqual([])
    }
  })

  it.each(['> '.repeat(5_000), '1. '.repeat(5_000), `${'['.repeat(3_000)}x`, '*_'.repeat(2_000), '\ufdd0'.repeat(50)])(
    'a reply with excessive nesting is still shown',
    (text) => {
      for (const [, markup] of markups) expect(render(text, markup)).not.toBe('')
      expect(toStyledText(text).ranges.every(({ length }) => length > 0)).toBe(true)
    },
  )

  it.each([
    'a'.repeat(100_000),
    '`'.repeat(100_000),
    `e${'\u0301'.repeat(100_000)}`,
    '&'.repeat(100_000),
    '```\n'.repeat(25_000),
    `\`\`\`\na${' '.repeat(100_000)}b`,
  ])('splitMarkdown measures each of a hundred thousand characters a bounded number of times', (text) => {
    let measured = 0
    const measure = (piece: string): number => {
      measured += piece.length
      return piece.replaceAll('&', '&amp;').length
    }
    const pieces = splitMarkdown(text, { limit: 4_000, measure })
    expect(Math.max(...pieces.map((piece) => piece.replaceAll('&', '&amp;').length))).toBeLessThanOrEqual(4_000)
    expect(measured).toBeLessThan(40 * text.length)
  })
})

describe('splitMarkdown', () => {
  it('splitMarkdown prefers to break at a paragraph, then at a line, a sentence and a space', () => {
    const word = 'word '.repeat(7).trim()
    const split = (text: string) => splitMarkdown(text, { limit: 50 })
    expect(split(`${word}\n\n${word}\nand so`)).toEqual([word, `${word}\nand so`])
    expect(split(`${word}\n${word}. And so`)).toEqual([word, `${word}. And so`])
    expect(split(`${word}. ${word} so`)).toEqual([`${word}.`, `${word} so`])
    expect(split(`${word} ${word}`)).toEqual([
      'word word word word word word word word word word',
      'word word word word',
    ])
  })

  it('splitMarkdown closes a code fence and opens it again with its language', () => {
    const text = '```js\nconst a = 1\nconst b = 2\nconst c = 3\n```\nDone.'
    expect(splitMarkdown(text, { limit: 40 })).toEqual([
      '```js\nconst a = 1\nconst b = 2\n```',
      '```js\nconst c = 3\n```\nDone.',
    ])
  })

  it('splitMarkdown leaves a short reply whole, and returns a blank reply as its only piece', () => {
    expect(splitMarkdown('Done.\n', { limit: 40 })).toEqual(['Done.'])
    expect(splitMarkdown(' \n', { limit: 40 })).toEqual([' \n'])
  })
})

describe('Markdown beyond the limits of the lexer', () => {
  const dense = `${'*a'.repeat(700)} [bank](https://evil.example) ![x](https://evil.example/x.png) <@1> @all`

  it('Markdown beyond the limits of the lexer is shown as text without links or mentions', () => {
    expect(render(dense, telegramHtml)).not.toContain('<a ')
    expect(render(dense, slackMrkdwn)).not.toMatch(/<(?:http|@)/)
    expect(render(dense, safeMarkdown)).not.toMatch(/(?<!\\)\]\(|<@|@all/)
  })

  it('a reply at which the lexer throws is sent as text', () => {
    const reply = '1. a\n   >>>>>>>>>>>2. b\n   c'
    expect(() => new Lexer({ gfm: true }).lex(reply)).toThrow(TypeError)
    expect(render(reply, plainText)).toBe(reply)
    expect(render(reply, slackMrkdwn)).toContain('2. b')
  })

  it('a paragraph beyond the limits of the lexer does not change the other paragraphs', () => {
    expect(render(`**before**\n\n${dense}\n\n**behind**`, telegramHtml)).toMatch(/^<b>before<\/b>[^]*<b>behind<\/b>$/)
  })
})

it.each([
  ['0. zero\n1. one', '0. zero\n1. one'],
  ['7. seven\n8. eight', '7. seven\n8. eight'],
])('the list %j keeps its numbers', (list, written) => {
  expect(render(list, plainText)).toBe(written)
})
