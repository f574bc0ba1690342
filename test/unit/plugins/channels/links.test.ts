// Links in a reply: if the text of a link names another host than its address, the address is shown, in every markup.
import { describe, expect, it } from 'vitest'
import * as all from '../../../../src/plugins/channels/shared/markup.ts'
import { toStyledText } from '../../../../src/plugins/channels/signal.ts'
import { isMisleading } from '../../../../src/plugins/channels/shared/links.ts'
import { type Markup, render } from '../../../../src/plugins/channels/shared/markdown.ts'

const { plainText, safeMarkdown, slackMrkdwn, teamsMarkdown, telegramHtml, whatsappText } = all
const markups: [string, Markup][] = Object.entries(all)
/** The markups that hide an address behind a label. */
const labelled: [string, Markup][] = Object.entries({ safeMarkdown, slackMrkdwn, teamsMarkdown, telegramHtml })

/** The text that people see, without the markup of each channel. */
function toVisibleText(written: string): string {
  return written
    .replace(/<a href="[^"]*">/g, '')
    .replace(/<\/?[a-z]+>/g, '')
    .replace(/<(?:https|mailto):[^>|]*\|([^>]*)>/g, '$1')
    .replace(/\]\([^)]*\)/g, '')
    .replace(/[[\]<>*_`\\\u200B]/g, '')
}

describe.each(markups)('misleading links in %s', (_name, markup) => {
  it.each([
    '[https://bank.com](https://evil.com)',
    '[**https://bank.com**](https://evil.com)',
    '[_**`https://bank.com`**_](https://evil.com)',
    '[https://ba**n**k.com](https://evil.com)',
    '[~~https://bank.com~~ ](https://evil.com)',
    '[https&colon;//bank.com](https://evil.com)',
    '[https&#58;//bank.com](https://evil.com)',
    '[https&#x3A;&#x2f;&sol;bank&period;com](https://evil.com)',
    '[https\\://bank.com](https://evil.com)',
    '[https:bank.com](https://evil.com)',
    '[https:\\\\\\\\bank.com](https://evil.com)',
    '[HTTPS://BANK.COM](https://evil.com)',
    '[ftp://bank.com](https://evil.com)',
    '[//bank.com/login](https://evil.com)',
    '[Log in at https://bank.com now](https://evil.com)',
    '[bank.com](https://evil.com)',
    '[www.bank.com](https://evil.com)',
    '[**bank.com**/login](https://evil.com)',
    '[🔒bank.com](https://evil.com)',
    '[(bank.com)](https://evil.com)',
    '[192.0.2.7](https://evil.com)',
    '[help@bank.com](https://evil.com)',
    '[https://bank.com@evil.com](https://evil.com)',
    '[https://evil.com@bank.com](https://evil.com)',
    '[https://bank.com:evil.com](https://evil.com)',
    '[https://ba\u200Bnk.com](https://evil.com)',
    '[b\u00ADa\u2060nk.c\uFEFFom](https://evil.com)',
    '[https://ba&ZeroWidthSpace;nk&#x2e;com](https://evil.com)',
    '[\u202Emoc.knab//:sptth](https://evil.com)',
    '[\u202Emoc.live//:sptth&#x202C;](https://evil.com)',
    '[https∶⁄⁄bank․com](https://evil.com)',
    '[ｈｔｔｐｓ：／／ｂａｎｋ．ｃｏｍ](https://evil.com)',
    '[b&afr;nk&unknown;com](https://evil.com)',
    '[https://bank%2Ecom](https://evil.com)',
    '[![https://bank.com](https://bank.com/x.png)](https://evil.com)',
    '[<b>https://bank.com</b>](https://evil.com)',
    '![https://bank.com](https://evil.com)',
    '![**bank.com**](https://evil.com)',
    '[https://bank.com][there]\n\n[there]: https://evil.com',
    '[**bank.com**]\n\n[**bank.com**]: https://evil.com',
    'bank.com[/login](https://evil.com)',
    '**bank.com**[/login](https://evil.com)',
    '[https://bank](https://evil.com)**.com**',
    '[ban](https://evil.com)[k.com](https://evil.com)',
    '[\u200B](https://evil.com)',
    '[ ](https&colon;//evil.com)',
    '[**&#8203;**](https://evil.com)',
  ])('the misleading link %j shows that it leads to evil.com', (reply) => {
    expect(toVisibleText(render(reply, markup))).toContain('https://evil.com/')
  })

  it.each(['https://bank.com@evil.com', '<https://bank.com@evil.com>', 'https://bank.com&commat;evil.com'])(
    'the address %j, which has a user name before its host, is written so that chats make no link of it, and the same address without the user name follows',
    (reply) => {
      const written = render(`See ${reply} now`, markup)
      expect(toVisibleText(written)).toContain('(https://evil.com/)')
      expect(written).not.toMatch(/bank\.com(@|%40|&commat;)evil/)
    },
  )

  it('a link to a host with look-alike letters shows the host in its ASCII form', () => {
    for (const reply of ['[bаnk.com](https://bаnk.com)', 'https://bаnk.com', '<https://bаnk.com>']) {
      expect(toVisibleText(render(reply, markup))).toContain('(https://xn--bnk-6cd.com/)')
    }
  })

  it('a mail link shows its recipient if its text names another one', () => {
    for (const reply of [
      '[help@bank.com](mailto:help@evil.com)',
      '[bank.com](mailto:bank.com@evil.com)',
      '[help@bank.com](mailto:help@bank.com,x@evil.com)',
      '[help@bank.com](mailto:help@bank.com%2Cx@evil.com)',
      '[help@bank.com](mailto:help@bank.com?cc=x@evil.com)',
      '[help@bank.com](mailto:help@bank.com?t%6F=x@evil.com)',
      '[help@bank.com](mailto:%FFhelp@evil.com)',
    ]) {
      expect(toVisibleText(render(reply, markup))).toMatch(/mailto:.*evil\.com/)
    }
  })

  it('the entities in a link target are decoded as a chat decodes them, and an unsafe target is removed', () => {
    expect(render('[a](javascript&colon;alert(1))', markup)).toBe('a')
    expect(render('[a](java&Tab;script&#58;alert(1))', markup)).toBe('a')
    expect(render('[a](data&#x3a;text/html,x)', markup)).toBe('a')
    expect(render('[a](https://bank.com&commat;evil.com)', markup)).toBe('a')
    expect(render('[a](https://bank.com&unknown;evil.com)', markup)).toBe('a')
    expect(render('[a](https://ci.example/?x=1&amp;y=2)', markup)).toMatch(/x=1&(amp;)?y=2/)
    expect(render('[a](https://ci.example/?x=1&copy;y)', markup)).not.toContain('copy;')
  })

  it('a written reply has no character that reverses text, neither plain nor as an entity', () => {
    const written = render('a\u202Eb &#x202E; &#8238; `\u2066c`\n\n~~~\n\u202Dd\n~~~', markup)
    expect(written).not.toMatch(/[\u202A-\u202E\u2066-\u2069]|&#x202E;|&#8238;/)
  })
})

it('a chat that reads Markdown finds no entity to decode', () => {
  for (const markup of [safeMarkdown, teamsMarkdown]) {
    expect(render('&amp;#x202E; &amp;commat; &unknown;', markup)).not.toMatch(/&#?\w+;/)
  }
})

describe.each(labelled)('honest links in %s', (_name, markup) => {
  it.each([
    ['[the log](https://ci.example.com/1)', 'the log'],
    ['[ci.example.com](https://ci.example.com/1)', 'ci.example.com'],
    ['[CI.example.com.](https://ci.example.com/1)', 'CI.example.com.'],
    ['[ci.example.com:443/1](https://ci.example.com/1)', 'ci.example.com:443/1'],
    ['[https://ci.example.com](https://ci.example.com/1?to=other.example)', 'https://ci.example.com'],
    ['[Build 4.2 on ci.example.com, e.g. today](https://ci.example.com/1)', 'Build 4.2 on ci.example.com, e.g. today'],
    ['[index.ts](https://git.example/index.ts)', 'index.ts'],
    ['[src/main.rs](https://git.example/main.rs)', 'src/main.rs'],
    ['[v1.2.3](https://git.example/v1.2.3)', 'v1.2.3'],
    ['[Ada](mailto:ada@example.com)', 'Ada'],
    ['[ada.b@example.com](mailto:ada.b@example.com?subject=x)', 'ada.b@example.com'],
    ['[![passing](https://ci.example/badge.svg)](https://ci.example/1)', 'passing'],
  ])('the honest link %j is written without its address', (reply, label) => {
    expect(toVisibleText(render(reply, markup))).toBe(label)
  })
})

it('a link whose text is its address is written once', () => {
  const reply = 'https://ci.example.com/a_b?x=1 and ada.b@example.com'
  for (const markup of [plainText, whatsappText]) expect(render(reply, markup)).toBe(reply)
  expect(render(reply, safeMarkdown)).toBe(
    '<https://ci.example.com/a_b?x=1> and [ada.b@example.com](<mailto:ada.b@example.com>)',
  )
  expect(toStyledText(reply)).toEqual({ text: reply, ranges: [] })
})

it('styled text shows the target of a disguised link', () => {
  expect(toStyledText('[**bank.com**](https://evil.com)')).toEqual({
    text: 'bank.com (https://evil.com/)',
    ranges: [{ start: 0, length: 8, style: 'BOLD' }],
  })
})

it.each(['https://a@', '.x', '....', 'a:', '&a', '%2e@', '//:', 'www.'])(
  'the time to check a link whose text repeats %j grows with the length of the text, not with the square of the length',
  (part) => {
    const measureTime = (count: number): number => {
      const began = performance.now()
      isMisleading(`x${part.repeat(count)}x`, 'https://evil.com/')
      return performance.now() - began
    }
    measureTime(1_000)
    const base = Math.max(measureTime(4_000), 5)
    // the shortest of three times, because another process may use the processor during one of them
    expect(Math.min(measureTime(64_000), measureTime(64_000), measureTime(64_000))).toBeLessThan(100 * base)
  },
)
