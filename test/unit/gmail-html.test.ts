import { describe, expect, test } from 'vitest'
import { dropInvisible, toVisibleText } from '../../src/gmail/html.ts'

const seen = (html: string) => toVisibleText(html).text

describe('the text of an HTML mail', () => {
  test('is what a person reads: paragraphs, lists, links with their targets, no styles and no scripts', () => {
    const html = `<html><head><title>T</title><style>p { color: red }</style></head><body><h1>Hello</h1><p>See
      <a href="https://example.com/a">the page</a>.</p><ul><li>one</li><li>two</li></ul><script>steal()</script></body></html>`
    expect(seen(html)).toBe('Hello\n\nSee the page [https://example.com/a].\n\n * one\n * two')
  })

  test.each([
    ['display:none', '<p style="display:none">X</p>'],
    ['display : NONE !important', '<p style="color:red; DISPLAY : NONE !important">X</p>'],
    ['a comment inside the style', '<p style="dis/**/play:none">X</p>'],
    ['visibility', '<div style="visibility:hidden"><p>X</p></div>'],
    ['font-size:0', '<span style="font-size:0">X</span>'],
    ['font-size:0px', '<span style="font-size: 0px;">X</span>'],
    ['opacity', '<span style="opacity:0">X</span>'],
    ['max-height with overflow', '<div style="max-height:0px;overflow:hidden">X</div>'],
    ['far off the screen', '<div style="position:absolute;left:-9999px">X</div>'],
    ['mso-hide', '<div style="mso-hide:all">X</div>'],
    ['the attribute hidden', '<p hidden>X</p>'],
    ['the attribute hidden, with a style', '<p hidden style="color:red">X</p>'],
    ['a list item', '<ul><li>a</li><li style="display:none">X</li></ul>'],
    ['a table cell', '<table><tr><td>a</td><td style="display:none">X</td></tr></table>'],
    ['a table row', '<table><tr style="display:none"><td>X</td></tr></table>'],
    ['a link', '<a href="https://x.example" style="display:none">X</a>'],
    ['below shown elements', '<div style="color:red"><b style="color:red"><i style="display:none">X</i></b></div>'],
    ['a comment', '<!-- X -->'],
    ['a template', '<template>X</template>'],
    ['the body itself', '<body style="display:none">X</body>'],
  ])('has nothing of what is hidden by %s', (_, html) => {
    const text = seen(`before ${html} after`)
    expect(text).not.toContain('X')
    if (!html.startsWith('<body')) expect(text).toMatch(/before[^]*after/)
  })

  test('keeps what only looks like it: zeros in other sizes, a name in another value', () => {
    const html = `<p style="font-size:10px">a</p><p style="opacity:0.9">b</p><p style="font-family:none">c</p>
      <p style="max-height:0">d</p><p style="display:block;margin:0">e</p>`
    expect(seen(html).replaceAll('\n', '')).toBe('abcde')
  })

  test('loses the characters that nobody sees', () => {
    expect(seen('pay\u00AD\u200Bpal \u{E0041}\u{E0042}ok\u202E!')).toBe('paypal ok!')
  })

  test('is cut where the input is too long, and says so without a word on the console', () => {
    const { text, isCut } = toVisibleText(`<p>${'a'.repeat(300_000)}</p>`)
    expect({ isCut, isShort: text.length < 210_000 }).toEqual({ isCut: true, isShort: true })
    expect(toVisibleText('<p>a</p>').isCut).toBe(false)
  })

  test('survives twenty thousand elements in one another', () => {
    expect(seen(`a${'<div>'.repeat(20_000)}b`)).toContain('a')
  })

  test('takes no longer for a mail that is one long line of blanks', () => {
    // with the square of its length it would be hours
    const blanks = '\u00A0'.repeat(1_000_000)
    expect(dropInvisible(`a${blanks}b${blanks}\nc`)).toBe(`a${blanks}b\nc`)
  })
})
