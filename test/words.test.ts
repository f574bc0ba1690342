// The pages are short: what a default, a check or an error text says at the right moment, no page says.
import { expect, test } from 'vitest'
import { pages, readLinks, readPage } from './pages.ts'
import { marker } from './readme.ts'

/** As `wc -w` counts: code, links and the bars of tables are words too. A table between the markers of `test/readme.ts` is generated. */
function countWords(page: string): number {
  const written = readPage(page).replaceAll(
    /<!-- (.+): [^>]* -->\n[^]*?<!-- end of (.+) -->/g,
    (all: string, name: string) => all.replace(marker(name), '$1$3'),
  )
  return written.split(/\s+/).filter((word) => word !== '').length
}

const linked = [...new Set(readLinks('README.md').map(({ target }) => target))].filter((page) => pages.includes(page))

test('the README has at most 800 words', () => {
  expect(countWords('README.md')).toBeLessThanOrEqual(800)
})

/** Of pages for users. The map of the code is a page for contributors: `.github/CONTRIBUTING.md` links it. */
const most = 32_000

test('the README and the pages that it links have few words, generated tables apart', () => {
  expect(linked.length).toBeGreaterThan(15)
  const words = Object.fromEntries(['README.md', ...linked].map((page) => [page, countWords(page)]))
  const sum = Object.values(words).reduce((total, count) => total + count, 0)
  expect({ words, sum }).toEqual({ words, sum: Math.min(sum, most) })
})

test('the map, which only contributors read, does not grow unseen', () => {
  expect(countWords('src/README.md')).toBeLessThanOrEqual(6_500)
})

test('each entry of the glossary is one line', () => {
  const [, glossary = ''] = /## Glossary\n([^]*?)\n## /.exec(readPage('src/README.md')) ?? []
  const rows = glossary.split('\n').filter((line) => line.startsWith('| '))
  expect(rows.length).toBeGreaterThan(30)
  expect(rows.filter((row) => row.length > 160)).toEqual([])
})
