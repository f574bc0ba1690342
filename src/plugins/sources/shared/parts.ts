// The text that a mail client shows of a mail with parts, the same for every source of mails.
import { tidyText, toVisibleText } from './html.ts'
import { cut } from './kit.ts'
import { type Attachment, maxAttachments } from './mail.ts'

/** How a source reads the parts of its mails. */
export type PartReader<Part> = {
  /** The media type in lower case, without parameters. */
  typeOf(part: Part): string
  /** Whether the part has the name of a file, or is an attachment for another reason. */
  isAttachment(part: Part): boolean
  partsOf(part: Part): readonly Part[]
  /** Undefined if the text was not fetched. */
  textOf(part: Part): string | undefined
  fileOf(part: Part): { readonly name: string; readonly bytes?: number }
}

/** The maximum depth of parts. A real mail has fewer levels. */
export const maxLevels = 50

/** Reads a part, or returns the default if the part is malformed: the other parts are still read. */
export function readOr<T>(read: () => T, instead: T): T {
  try {
    return read()
  } catch {
    return instead
  }
}

/** The text of all parts in order, and of several alternatives the last one with HTML, or else the last readable one. `isCut`: a part of it is missing. */
export function readShownText<Part>(top: Part, reader: PartReader<Part>): { text: string; isCut: boolean } {
  const shown = findShownParts(top, reader).map((part) => {
    const text = reader.textOf(part)
    if (text === undefined) return { text: '', isCut: true }
    return reader.typeOf(part) === 'text/html' ? toVisibleText(text) : { text: tidyText(text).trim(), isCut: false }
  })
  const texts = shown.map(({ text }) => text).filter((text) => text !== '')
  return { text: texts.join('\n\n'), isCut: shown.some(({ isCut }) => isCut) }
}

const maxNameChars = 100
const maxTypeChars = 80

/** The files that a mail client lists, with a name on one line. */
export function listAttachments<Part>(top: Part, reader: PartReader<Part>): Attachment[] {
  return listFileParts(top, reader, maxAttachments).map((part) => {
    const { name, ...size } = reader.fileOf(part)
    const toLine = (text: string, max: number) => cut(tidyText(text).replaceAll(/\s+/g, ' ').trim(), max)
    return { name: toLine(name, maxNameChars), type: toLine(reader.typeOf(part), maxTypeChars), ...size }
  })
}

/** More parts than these are not counted. */
export const maxCountedFiles = 1_000

/** The first parts that a mail client lists as files. A picture that belongs to an HTML text is none. */
export function listFileParts<Part>(top: Part, reader: PartReader<Part>, max: number): Part[] {
  const found: Part[] = []
  function visit(part: Part, isRelated: boolean, level: number): void {
    if (level > maxLevels || found.length === max) return
    const type = reader.typeOf(part)
    if (!reader.isAttachment(part) && type !== 'message/rfc822') {
      for (const each of reader.partsOf(part)) visit(each, type === 'multipart/related', level + 1)
    } else if (!isRelated || !type.startsWith('image/')) found.push(part)
  }
  visit(top, false, 0)
  return found
}

/** The parts with text in reading order, without attachments. Mails inside a mail count as attachments. */
export function findShownParts<Part>(part: Part, reader: PartReader<Part>, level = 0): Part[] {
  const type = reader.typeOf(part)
  if (level > maxLevels || reader.isAttachment(part) || type === 'message/rfc822') return []
  if (type === 'text/plain' || type === 'text/html') return [part]
  const inside = reader
    .partsOf(part)
    .map((each) => findShownParts(each, reader, level + 1))
    .filter((texts) => !texts.every((text) => reader.textOf(text)?.trim() === ''))
  if (type !== 'multipart/alternative') return inside.flat()
  const isHtml = (text: Part) => reader.typeOf(text) === 'text/html'
  return inside.findLast((texts) => texts.some(isHtml)) ?? inside.at(-1) ?? []
}
