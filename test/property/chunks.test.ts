// The pieces of any text of a model fit the limit, are in order, lose only white space and leave no fence open.
import { array, assert, constantFrom, integer, oneof, property, string } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findFenceAfter, splitMarkdown } from '../../src/plugins/channels/shared/chunks.ts'
import { safeMarkdown, slackMrkdwn, telegramHtml } from '../../src/plugins/channels/shared/markup.ts'
import { render } from '../../src/plugins/channels/shared/markdown.ts'

const word = oneof(
  constantFrom(
    'word',
    'sentence. ',
    '\n',
    '\n\n',
    ' ',
    '  ',
    '& < > ',
    '**bold** ',
    '`code` ',
    '👨‍👩‍👧',
    'e\u0301',
    '\ud83d',
    '~',
    '> ',
  ),
  string({ unit: 'grapheme', maxLength: 12 }),
)
const prose = array(word, { maxLength: 120 }).map((parts) => parts.join('').replace(/`{3,}|~{3,}/g, ''))
const fence = constantFrom('```', '```js', '~~~~ python', '  ```', '> ```', '- ```sh', '1. ```')
const block = array(constantFrom('let a = 1', '', '  indented', '``` x', 'x'.repeat(70)), { maxLength: 12 })
const code = fence.chain((open) => block.map((lines) => `\n${open}\n${lines.join('\n')}\n`))
const markdown = array(oneof(prose, code, fence), { maxLength: 6 }).map((parts) => parts.join('\n'))
const limit = integer({ min: 80, max: 400 })

function removeSpace(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\uFFFD').replace(/\s/gu, '')
}

describe('splitMarkdown', () => {
  it('every piece of a text that is not blank fits the limit after rendering, and is not blank', () => {
    for (const markup of [telegramHtml, slackMrkdwn, safeMarkdown]) {
      const measure = (piece: string) => render(piece, markup).length
      assert(
        property(markdown, limit, (text, max) => {
          // an escaped word can be longer than a piece, but none of these words can
          const pieces = splitMarkdown(text, { limit: max, measure })
          if (text.trim() === '') expect(pieces).toEqual([text])
          else for (const piece of pieces) expect([piece.trim() !== '', measure(piece) <= max]).toEqual([true, true])
        }),
        { numRuns: 150 },
      )
    }
  })

  it('text without code loses only white space when it is split, and gains nothing', () => {
    assert(
      property(prose, limit, (text, max) => {
        expect(removeSpace(splitMarkdown(text, { limit: max }).join(''))).toBe(removeSpace(text))
      }),
    )
  })

  it('no piece of a split text leaves a code fence open, and every line of code stays inside a fence', () => {
    assert(
      property(
        array(constantFrom('const a = 1', 'x'.repeat(50), '  b', ''), { minLength: 1, maxLength: 60 }),
        limit,
        (lines, max) => {
          const text = `Before.\n\n\`\`\`ts\n${lines.join('\n')}\n\`\`\`\n\nAfter.`
          const pieces = splitMarkdown(text, { limit: max })
          for (const piece of pieces) expect(findFenceAfter(piece, undefined)).toBeUndefined()
          const code = pieces.flatMap((piece) =>
            [...piece.matchAll(/```ts\n(.*?)\n?```/gs)].map(([, body = '']) => body),
          )
          const dropBlankLines = (all: readonly string[]) => all.filter((line) => line.trim() !== '')
          expect(dropBlankLines(code.flatMap((body) => body.split('\n')))).toEqual(dropBlankLines(lines))
        },
      ),
    )
  })

  it('no piece of a split text begins or ends inside a visible character', () => {
    const family = '👨‍👩‍👧‍👦'
    assert(
      property(integer({ min: 1, max: 200 }), limit, (count, max) => {
        for (const piece of splitMarkdown(family.repeat(count), { limit: max })) {
          expect(piece.replaceAll(family, '')).toBe('')
        }
      }),
    )
  })

  it('the same text is always split in the same way', () => {
    assert(
      property(markdown, limit, (text, max) => {
        expect(splitMarkdown(text, { limit: max })).toEqual(splitMarkdown(text, { limit: max }))
      }),
    )
  })
})

describe('render', () => {
  it('a text that is not blank is not empty after it is rendered', () => {
    for (const markup of [telegramHtml, slackMrkdwn, safeMarkdown]) {
      assert(
        property(markdown, (text) => {
          if (text.trim() !== '') expect(render(text, markup)).not.toBe('')
        }),
      )
    }
  })

  it('every tag in HTML for Telegram comes from the renderer, not from the text', () => {
    const hostile = array(
      constantFrom(
        '<b>',
        '</b>',
        '<a href="tg://user?id=1">',
        '&lt;',
        '[x](tg://user?id=1)',
        '[x](https://a.b/"onclick=)',
        '**',
        '`',
        '\n',
        '> ',
        '"',
        '<!--',
      ),
      { maxLength: 30 },
    ).map((parts) => parts.join(''))
    assert(
      property(hostile, (text) => {
        const rest = render(text, telegramHtml)
          .replace(/<\/?(b|i|s|code|pre|blockquote|a)>/g, '')
          .replace(/<a href="https?:\/\/[^"<>]*">/g, '')
        expect(rest).not.toMatch(/[<>]/)
      }),
    )
  })

  it('every < in text for Slack begins a link', () => {
    const hostile = array(
      constantFrom(
        '<!channel>',
        '<@U123>',
        '<!here|x>',
        '[a](<!channel>)',
        '`',
        '<',
        '>',
        '|',
        '[a|b](https://x.y/|z)',
        '**',
        '\n',
      ),
      {
        maxLength: 30,
      },
    ).map((parts) => parts.join(''))
    assert(
      property(hostile, (text) => {
        expect(
          render(text, slackMrkdwn)
            .replace(/<https?:\/\/[^<>|]*\|[^<>|]*>/g, '')
            .replace(/^> /gm, '')
            .replace(/> /g, ''),
        ).not.toMatch(/</)
      }),
    )
  })
})
