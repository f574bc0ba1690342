import { describe, expect, test, vi } from 'vitest'
import { tidyText, toVisibleText } from '../../../../../src/plugins/sources/shared/html.ts'

const toText = (html: string) => toVisibleText(html).text

describe('the text of an HTML mail', () => {
  test('the text of a mail has paragraphs, lists and link targets, but no styles or scripts', () => {
    const html = `<html><head><title>T</title><style>p { color: red }</style></head><body><h1>Hello</h1><p>See
      <a href="https://example.com/a">the page</a>.</p><ul><li>one</li><li>two</li></ul><script>steal()</script></body></html>`
    expect(toText(html)).toBe('Hello\n\nSee the page [https://example.com/a].\n\n * one\n * two')
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
    ['the style of a list item', '<ul><li>a</li><li style="display:none">X</li></ul>'],
    ['the style of a table cell', '<table><tr><td>a</td><td style="display:none">X</td></tr></table>'],
    ['the style of a table row', '<table><tr style="display:none"><td>X</td></tr></table>'],
    ['the style of a link', '<a href="https://x.example" style="display:none">X</a>'],
    [
      'a style inside elements that are shown',
      '<div style="color:red"><b style="color:red"><i style="display:none">X</i></b></div>',
    ],
    ['an opacity without a digit before its point', '<p style="opacity:.0">X</p>'],
    ['opacity in percent', '<p style="opacity: 0%">X</p>'],
    ['a filter', '<p style="filter:opacity(0)">X</p>'],
    ['clip-path', '<p style="clip-path: inset(50%)">X</p>'],
    ['a circle with the radius zero', '<p style="clip-path:circle(0 at 50% 50%)">X</p>'],
    ['a polygon without an area', '<p style="clip-path:polygon(0 0, 0px 0px, 0 0)">X</p>'],
    ['clip', '<p style="position:absolute;clip:rect(1px,1px,1px,1px)">X</p>'],
    ['a scale of zero', '<p style="transform: rotate(3deg) scale(0)">X</p>'],
    ['a scale of zero in one direction', '<p style="transform:scaleY(0.0)">X</p>'],
    ['the property scale', '<p style="scale:0">X</p>'],
    ['a matrix', '<p style="transform:matrix(0, 0, 0, 0, 0, 0)">X</p>'],
    ['a move off the page', '<p style="transform:translateX(-9999px)">X</p>'],
    ['a margin off the page', '<p style="margin-left:-9999px">X</p>'],
    ['a position in em off the page', '<p style="position:absolute;top:-999em">X</p>'],
    ['a position far to the right', '<p style="position:fixed;left:99999px">X</p>'],
    ['an indent off the page', '<p style="text-indent:-9999px">X</p>'],
    ['an escape in a name', '<p style="dis\\70lay:none">X</p>'],
    ['an escape in a value', '<p style="display:\\6eone">X</p>'],
    ['escapes with white space and without digits', '<p style="d\\69 s\\play:n\\00006f ne">X</p>'],
    ['an escape whose backslash is an entity', '<p style="dis&#92;70lay:none">X</p>'],
    ['a value that a later, invalid one does not replace', '<p style="display:none;display:shown">X</p>'],
    ['an important value', '<p style="display:none!important;display:block">X</p>'],
    ['a declaration after a semicolon in quotes', `<p style="font-family:'a;b';display:none">X</p>`],
    ['a declaration before a comment that is not closed', '<p style="display:none;/* color:red">X</p>'],
    ['a font of the size zero', '<p style="font:0/0 a">X</p>'],
    ['a font of one pixel', '<p style="font-size:1px">X</p>'],
    ['a size that is inherited', '<div style="font-size:0"><p style="color:red">X</p></div>'],
    ['a multiple of a size that is zero', '<div style="font-size:0"><p style="font-size:2em">X</p></div>'],
    ['a calculated size of zero', '<p style="font-size:calc(0px)">X</p>'],
    ['a transparent colour', '<p style="color:rgba(0, 0, 0, .0)">X</p>'],
    ['a transparent colour in digits', '<p style="color:#00000000">X</p>'],
    ['a height of a pixel', '<p style="height:1px;overflow:hidden">X</p>'],
    ['content-visibility', '<p style="content-visibility:hidden">X</p>'],
    ['the font size of a link', '<a href="https://x.example/X" style="font-size:0">X</a>'],
    ['an HTML comment', '<!-- X -->'],
    ['a template', '<template>X</template>'],
    ['the body itself', '<body style="display:none">X</body>'],
    ['a class', '<style>.h{display:none}</style><p class="a h">X</p>'],
    ['a class in a list of selectors', '<style>a, p.H , b{color:red;display:none}</style><p class="h">X</p>'],
    ['a sheet after the text', '<p class="h">X</p><style>.h{font-size:0}</style>'],
    ['an id', '<style>#h{visibility:hidden}</style><p id="h">X</p>'],
    ['a tag', '<style>h6{display:none}</style><h6>X</h6>'],
    ['an attribute', '<style>p[data-h~="b"]{display:none}</style><p data-h="a b">X</p>'],
    ['a rule for elements inside a class', '<style>.h p{display:none}</style><div class="h"><div><p>X</p></div></div>'],
    ['a rule for children of a class', '<style>div.h>p{display:none}</style><div class="h"><p>X</p></div>'],
    ['a rule for elements after another one', '<style>b+p,b ~ i{display:none}</style><b>b</b><p>X</p>'],
    ['a pseudo-class', '<style>p:nth-child(2n, 1):not(.x){display:none}</style><p>X</p>'],
    ['a rule in @media', '<style>@media only screen and (min-width:100px){.h{display:none}}</style><p class="h">X</p>'],
    ['a rule in @supports', '<style>@supports (display:grid){@media all{.h{display:none}}}</style><p class="h">X</p>'],
    ['a nested rule', '<style>.a{color:red;.h{display:none}}</style><div class="a"><p class="h">X</p></div>'],
    ['a nested rule for the element itself', '<style>.a{&.h{display:none}}</style><p class="a h">X</p>'],
    ['a nested rule with a combinator', '<style>.a{>.h{display:none}}</style><div class="a"><p class="h">X</p></div>'],
    ['a rule that is nested twice', '<style>.a{.b{p&{display:none}}}</style><div class="a"><p class="b">X</p></div>'],
    ['a rule nested in a list', '<style>i,.a{b,.h{display:none}}</style><div class="a"><p class="h">X</p></div>'],
    ['@media in a rule', '<style>.h{@media screen{display:none}}</style><p class="h">X</p>'],
    [
      'a rule in @media in a rule',
      '<style>.a{@media all{& .h{display:none}}}</style><div class="a"><p class="h">X</p></div>',
    ],
    ['a declaration after a nested rule', '<style>.h{b{color:red}display:none}</style><p class="h">X</p>'],
    ['a nested rule that is not closed', '<style>.a{.h{display:none</style><div class="a"><p class="h">X</p></div>'],
    ['a rule after nested rules', '<style>.a{.b{c{}}}.h{display:none}</style><p class="h">X</p>'],
    [
      'a nested rule after a declaration of its parent',
      '<style>.h{display:block;&{display:none}}</style><p class="h">X</p>',
    ],
    [
      'more selectors of a nested rule than the limit',
      `<style>${'a,.h{'.repeat(60)}display:none</style><p class="h">X</p>`,
    ],
    ['rules that are nested deeper than the limit', `<style>${'.a{b:c;'.repeat(20_000)}</style><p>X</p>`],
    ['an escape in a selector', '<style>.\\68 id{display:none}</style><p class="hid">X</p>'],
    ['a comment in a sheet', '<style><!-- /* } */ .h/**/{display:none} --></style><p class="h">X</p>'],
    ['a rule that is not closed', '<style>.h{display:none</style><p class="h">X</p>'],
    ['an important rule', '<style>.h{display:none!important}</style><p class="h" style="display:block">X</p>'],
    ['a stronger rule', '<style>p.h{display:none}.h{display:block}</style><p class="h">X</p>'],
    [
      'the last of thousands of rules',
      `<style>${'.h .h .h .h .h .h .x{}'.repeat(9_000)}.x{display:none}</style><p class="x">X</p>`,
    ],
    ['white on white', '<p style="color:#fff">X</p>'],
    ['nearly white on white', '<p style="color:rgb(250, 251, 252)">X</p>'],
    ['white by name', '<p style="color:white">X</p>'],
    ['white in hsl()', '<p style="color:hsl(0, 0%, 99%)">X</p>'],
    ['a colour on the same colour', '<table><tr><td bgcolor="#ff0000"><font color="red">X</font></td></tr></table>'],
    [
      'a colour on the colour of an element around it',
      '<div style="background:#123456"><p style="color:#123456">X</p></div>',
    ],
    ['a named colour on the same named colour', '<p style="background:tomato;color:tomato">X</p>'],
    [
      'a background whose later value is invalid',
      '<p style="background-color:#fff;background-color:nocolour;color:#fff">X</p>',
    ],
    [
      'a background whose later values are invalid',
      '<p style="background:#fff;background:nocolour #000;color:#fff">X</p>',
    ],
    ['a colour whose later value is invalid', '<p style="color:#fff;color:nocolour">X</p>'],
    ['a transparent colour whose later value is invalid', '<p style="color:transparent;color:nocolour">X</p>'],
    ['a named colour on the same colour in digits', '<p style="background:#ff6347;color:tomato">X</p>'],
    ['a background that a later one replaces', '<p style="background:#000;background:#fff;color:#fff">X</p>'],
    ['a colour of a class', '<style>.h{color:#FFFFFF}</style><p class="h">X</p>'],
    ['a colour of the body', '<body text="#ffffff">X</body>'],
    ['a link in the colour of the page', '<a href="https://x.example/X" style="color:#fff">X</a>'],
    ['details that are closed', '<details>X<p>X</p></details>'],
    ['a dialog that is not open', '<dialog>X</dialog>'],
    ['a relative position far off the page', '<p style="position:relative;left:-9999px">X</p>'],
  ])('text that is hidden by %s is removed', (_, html) => {
    const text = toText(`before ${html} after`)
    expect(text).not.toContain('X')
    if (!html.startsWith('<body')) expect(text).toMatch(/before[^]*after/)
  })

  test('text is kept if its style only resembles a style that hides text', () => {
    const html = `<p style="font-size:10px">a</p><p style="opacity:0.9">b</p><p style="font-family:none">c</p>
      <p style="max-height:0">d</p><p style="display:block;margin:0">e</p>`
    expect(toText(html).replaceAll('\n', '')).toBe('abcde')
  })

  test.each([
    ['a size below one em', '<p style="font-size: .9em">X</p>'],
    ['a size below one rem', '<p style="font-size:0.75rem">X</p>'],
    ['an offset without a position', '<p style="left: -9999px; top:-9999px">X</p>'],
    ['an offset of a static position', '<p style="position:static;left:-9999px">X</p>'],
    ['a clip without a position', '<p style="clip:rect(0,0,0,0)">X</p>'],
    ['a small move', '<p style="position:relative;left:-20px;transform:translate(-50%, -50%)">X</p>'],
    ['a scale', '<p style="transform:scale(1.05)">X</p>'],
    ['a clip-path that leaves an area', '<p style="clip-path:inset(0 5px)">X</p>'],
    ['a fraction of opacity', '<p style="opacity:.9">X</p>'],
    [
      'a font size of its own in a cell of the font size zero',
      '<td style="font-size:0"><p style="font-size:13px">X</p></td>',
    ],
    ['a child that is visible again', '<div style="visibility:hidden"><p style="visibility:visible">X</p></div>'],
    ['a child with a colour again', '<div style="color:transparent"><p style="color:#333">X</p></div>'],
    ['a value that a later one replaces', '<p style="display:none;display:block">X</p>'],
    ['display:none in quotes', `<p style="content:'display:none';font-family:'none;display:none'">X</p>`],
    ['display:none in a comment', '<p style="/*display:none*/color:red">X</p>'],
    ['a height that min-height replaces', '<p style="height:1px;min-height:20px;overflow:hidden">X</p>'],
    ['letters that show a gradient', '<p style="color:transparent;background-clip:text">X</p>'],
    ['a number that is not a length', '<p style="font-size:1;margin-left:-9999">X</p>'],
    ['an offset of a relative position', '<p style="position:relative;left:-150px;top:-120px">X</p>'],
    ['a class that no rule names', '<style>.h{display:none}</style><p class="hh">X</p>'],
    ['a rule for print', '<style>@media print{p{display:none}}</style><p>X</p>'],
    ['a rule for small screens', '<style>@media (max-width:600px){p{display:none}}</style><p>X</p>'],
    ['a nested rule for elements inside another class', '<style>.a{.h{display:none}}</style><p class="h">X</p>'],
    ['@media print in a rule', '<style>p{@media print{display:none}}</style><p>X</p>'],
    ['a nested rule for other elements', '<style>p{b{display:none}}</style><p>X</p>'],
    ['a sheet for print', '<style media="print">p{display:none}</style><p>X</p>'],
    [
      'rules for other ancestors or another state',
      '<style>div>b>p, .h p, p:hover{display:none}</style><div><p>X</p></div>',
    ],
    ['a rule that a later one replaces', '<style>p{display:none}p{display:block}</style><p>X</p>'],
    [
      'a style attribute that overrides a rule',
      '<style>.h{display:none}</style><p class="h" style="display:block">X</p>',
    ],
    ['white on black', '<table bgcolor="#000000"><tr><td style="color:#fff">X</td></tr></table>'],
    [
      'white on a class that is black',
      '<style>.h{background:#000}</style><div class="h"><p style="color:#fff">X</p></div>',
    ],
    ['white on a colour in another notation', '<p style="background:lab(20% 0 0);color:#fff">X</p>'],
    ['white on a colour after lengths', '<p style="background:0px 0em no-repeat black;color:#fff">X</p>'],
    ['white on a colour with a variable', '<p style="background:var(--dark);color:#fff">X</p>'],
    ['white on a picture', '<div style="background:url(a.png)"><p style="color:#fff">X</p></div>'],
    [
      'white on a gradient',
      '<div style="background-image:linear-gradient(red, blue)"><p style="color:#fff">X</p></div>',
    ],
    ['white on a black background before its picture', '<p style="background:#000 url(a.png);color:#fff">X</p>'],
    ['black on white again', '<div style="color:#fff"><p style="color:#000">X</p></div>'],
    ['grey on white', '<p style="color:#999">X</p>'],
    ['details that are open', '<details open>X</details>'],
    ['the summary of details', '<details><summary>X</summary>hidden</details>'],
    ['a dialog that is open', '<dialog open>X</dialog>'],
    ['a bold font', '<p style="font:700 12px/0 Arial">X</p>'],
    ['a name that every JavaScript object has', '<p style="constructor:none;font-size:constructor">X</p>'],
  ])('text with %s is kept', (_, html) => {
    expect(toText(`before ${html} after`)).toMatch(/before\s+X\s+after/)
  })

  test('the halves of a word around hidden text are joined, and the space between two words is kept', () => {
    expect(toText('pay<b style="font-size:0">X</b>pal')).toBe('paypal')
    const cell = '<td style="font-size:0"><i style="font-size:9px">two</i> <i style="font-size:9px">words</i></td>'
    expect(toText(cell)).toBe('two words')
  })

  test('invisible characters are removed', () => {
    expect(toText('pay\u00AD\u200Bpal \u{E0041}\u{E0042}ok\u202E!')).toBe('paypal ok!')
  })

  test('a mail that is too long is cut and marked as cut, and nothing is printed on the console', () => {
    const printed = [vi.spyOn(console, 'warn'), vi.spyOn(console, 'log'), vi.spyOn(console, 'error')]
    const { text, isCut } = toVisibleText(`<p>${'a'.repeat(300_000)}</p>`)
    expect({ isCut, isShort: text.length < 210_000 }).toEqual({ isCut: true, isShort: true })
    expect(toVisibleText('<p>a</p>').isCut).toBe(false)
    for (const spy of printed) expect(spy).not.toHaveBeenCalled()
  })

  test('a mail with thousands of nested elements is cut and marked as cut', () => {
    const nested = toVisibleText(`a${'<div>'.repeat(20_000)}b`)
    expect([nested.text.startsWith('a'), nested.isCut]).toEqual([true, true])
  })

  test('deeply nested lists and quotes become plain blocks', () => {
    const text = toText(`${'<blockquote>'.repeat(40)}deep<ol><li>item</li></ol>${'</blockquote>'.repeat(40)}`)
    expect(text).toMatch(/^(?:> ?){16}deep/)
    expect(text).toContain('item')
  })

  test('nested links have the target of the outer link, once', () => {
    expect(toText('<a href="https://a.example">one <a href="https://b.example">two</a></a>')).toBe(
      'one two [https://a.example]',
    )
  })

  test.each([
    ['rules of one class', `<style>${'.x{}'.repeat(25_000)}</style>${'<b class=x>a</b>'.repeat(6_000)}`],
    ['rules around one another', `<style>${'* * * * *{}'.repeat(7_000)}</style>${'<b>'.repeat(1_500)}a`],
    ['declarations for all elements', `<style>*{${'a:b;'.repeat(20_000)}}</style>${'<b>a</b>'.repeat(10_000)}`],
    ['brackets in a selector', `<style>${'['.repeat(190_000)}{}</style>a`],
    ['letters in a background', `<p style="background:${'a'.repeat(190_000)}">a</p>`],
  ])('a mail that consists only of %s is read to its end before the test times out', (_, html) => {
    expect(toVisibleText(html).isCut).toBe(false)
  })

  test('the time for a long line of blanks is linear in its length', () => {
    // quadratic time would be hours
    const blanks = '\u00A0'.repeat(1_000_000)
    expect(tidyText(`a${blanks}b${blanks}\nc`)).toBe(`a${blanks}b\nc`)
  })
})
