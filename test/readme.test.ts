// The pages are correct: their tables match the code, their links work, and all of them are in the package.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { pages, readAnchors, readLinks, readPage, root } from './pages.ts'
import { marker, tablePages, toReadmeTables } from './readme.ts'
import { toRunnerTables } from './readme-runners.ts'

const update = process.env['UPDATE_README'] === '1'

const generated = [
  ...Object.entries(toReadmeTables()).map(([name, text]) => [tablePages[name] ?? 'README.md', name, text] as const),
  ...Object.entries(toRunnerTables()).map(([name, text]) => ['src/plugins/runners/README.md', name, text] as const),
]

test.each(generated)(
  'the table of %s about %s is generated from the code (UPDATE_README=1 writes it)',
  (page, name, made) => {
    if (update) {
      const text = readPage(page)
      writeFileSync(
        join(root, page),
        text.replace(marker(name), (_, start: string, __, end: string) => `${start}${made}${end}`),
      )
    }
    expect(marker(name).exec(readPage(page))?.[2]).toBe(made)
  },
)

test('every generated table has one place in the pages, and every marked place has its table', () => {
  const marked = pages.flatMap((page) =>
    [...readPage(page).matchAll(/<!-- end of (.+) -->/g)].map(([, name = '']) => `${page} ${name}`),
  )
  expect(marked.toSorted()).toEqual(generated.map(([page, name]) => `${page} ${name}`).toSorted())
})

describe('links and files of the pages', () => {
  test.each(pages)('the links of %s lead to existing files and headings', (page) => {
    for (const { target, anchor } of readLinks(page)) {
      expect([page, target, existsSync(join(root, target))]).toEqual([page, target, true])
      if (anchor !== undefined)
        expect([page, target, readAnchors(target)]).toEqual([page, target, expect.arrayContaining([anchor])])
    }
  })

  test('every page can be reached from the README', () => {
    const reached = new Set(['README.md'])
    for (const page of reached) {
      for (const { target } of readLinks(page)) if (pages.includes(target)) reached.add(target)
    }
    expect(pages.filter((page) => !reached.has(page))).toEqual([])
  })

  test('every page is in the package, with all files that it links to, but for those of contributors, who have a checkout', () => {
    const { files }: { files: string[] } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    const ships = (file: string) =>
      file === 'README.md' ||
      files.some(
        (entry) =>
          file === entry ||
          file.startsWith(`${entry}/`) ||
          (entry === 'src/**/README.md' && /^src\/(.+\/)?README\.md$/.test(file)),
      )
    const isOfCheckout = (file: string) => file.startsWith('.github/')
    const shipped = pages.filter((page) => !isOfCheckout(page))
    const linked = shipped.flatMap((page) => readLinks(page).map(({ target }) => target))
    expect([...shipped, ...linked].filter((file) => !ships(file) && !isOfCheckout(file))).toEqual([])
  })
})
