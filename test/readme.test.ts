// What the README says is true: its tables are the code's, and its links lead somewhere.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { marker, toReadmeTables } from './readme.ts'
import { toRunnerTables } from './readme-runners.ts'

const root = resolve(import.meta.dirname, '..')
const file = join(root, 'README.md')
const runners = 'src/effects/runners/README.md'
const pages = [
  'README.md',
  'src/README.md',
  'src/effects/channels/README.md',
  runners,
  'transforms/README.md',
  'presets/gmail/README.md',
]
const update = process.env['UPDATE_README'] === '1'

const generated = [
  ...Object.entries(toReadmeTables()).map(([name, text]) => ['README.md', name, text] as const),
  ...Object.entries(toRunnerTables()).map(([name, text]) => [runners, name, text] as const),
]

test.each(generated)('what %s has of %s is what the code says (UPDATE_README=1 writes it)', (page, name, made) => {
  const at = join(root, page)
  if (update) {
    const text = readFileSync(at, 'utf8')
    writeFileSync(
      at,
      text.replace(marker(name), (_, start: string, __, end: string) => `${start}${made}${end}`),
    )
  }
  expect(marker(name).exec(readFileSync(at, 'utf8'))?.[2]).toBe(made)
})

describe('the README', () => {
  test('every link inside the project leads to a file', () => {
    for (const page of pages) {
      const text = readFileSync(join(root, page), 'utf8')
      for (const [, target = ''] of text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)) {
        expect([page, target, existsSync(resolve(root, page, '..', target))]).toEqual([page, target, true])
      }
    }
  })

  test('every link to a heading has its heading', () => {
    const text = readFileSync(file, 'utf8')
    const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    )
    for (const [, anchor] of text.matchAll(/\]\(#([^)]+)\)/g)) expect(headings).toContain(anchor)
  })
})
