// The pages: the README, the one for contributors, and the README of each folder that has one.
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

export const root = resolve(import.meta.dirname, '..')

/** Every page, by its path from the root. */
export const pages: readonly string[] = [
  'README.md',
  '.github/CONTRIBUTING.md',
  ...['src', 'transforms', 'presets'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /(^|[/\\])README\.md$/.test(name))
      .map((name) => `${folder}/${name.replaceAll('\\', '/')}`)
      .toSorted(),
  ),
]

export function readPage(page: string): string {
  return readFileSync(join(root, page), 'utf8')
}

export type Block = { readonly language: string; readonly text: string; readonly section: string }

/** The fenced blocks of a page, in order, each with the heading above it. */
export function readBlocks(page: string): readonly Block[] {
  let section = ''
  const blocks: Block[] = []
  const parts = /^ *```(\w+)\n([^]*?)^ *```$|^#+ (.+)$/gm
  for (const [, language, text = '', heading] of readPage(page).matchAll(parts)) {
    if (language === undefined) section = heading ?? ''
    else blocks.push({ language, text, section })
  }
  return blocks
}

/** The first block of a language that contains the mark. */
export function readBlock(page: string, language: string, mark: string): string {
  const found = readBlocks(page).find((block) => block.language === language && block.text.includes(mark))
  if (found === undefined) throw new Error(`${page} has no ${language} block with ${mark}`)
  return found.text
}

/** A page without its code blocks. */
function readProse(page: string): string {
  return readPage(page).replaceAll(/^ *```\w*\n[^]*?^ *```$/gm, '')
}

/** The anchors of a page, which GitHub derives from its headings. */
export function readAnchors(page: string): readonly string[] {
  return [...readProse(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

/** Each link to a place in the project: the page or file relative to the root, and the anchor. */
export function readLinks(page: string): readonly { readonly target: string; readonly anchor: string | undefined }[] {
  const here = resolve('/', page)
  return [...readProse(page).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)].map(([, file = '', anchor]) => ({
    target: (file === '' ? here : resolve(here, '..', file)).slice(1),
    anchor,
  }))
}
