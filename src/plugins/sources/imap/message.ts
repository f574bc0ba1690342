// Turns the bytes of a mail into the mail for the hook. The bytes come from strangers: sizes, parts and levels are limited, and nothing throws.
import { createHash } from 'node:crypto'
import PostalMime from 'postal-mime'
import { cut } from '../shared/kit.ts'
import { buildBody, type Mail, readHeaderText, toIsoDate } from '../shared/mail.ts'
import { listAttachments, maxLevels, readOr, readShownText, type PartReader } from '../shared/parts.ts'

/** The bytes of a mail that are fetched. Texts come before attachments, so a longer mail rarely loses text. */
export const maxSourceBytes = 4 * 1024 * 1024
const limits = {
  maxNestingDepth: maxLevels,
  maxHeadersSize: 256 * 1024,
  // a mail inside a mail counts as an attachment
  forceRfc822Attachments: true,
}
/**
 * The lines that are read. The parser takes about 15 µs for each, however short it is, and the gateway does nothing else meanwhile: a mail of
 * 4 MiB of empty lines took 95 s. Each line may also begin a part, of about a kilobyte of memory.
 */
const maxLines = 10_000
/** The bytes that are read as headers of a mail whose parts cannot be read. */
const maxHeadBytes = 64 * 1024
const snippetChars = 200
const maxLabels = 50
const labelChars = 200
/** Characters of a text part that are read. More than `maxBytes` allows, because blanks are removed. */
const maxTextChars = 1_000_000
const nothing = { text: '', isCut: true }

export type FetchedMail = {
  /** The first bytes of the mail: at most `maxSourceBytes`. */
  readonly source: Uint8Array
  /** The bytes that the mail has. */
  readonly size: number
  readonly receivedAt: number
  /** The name of the folder, and the flags and labels that the server has for the mail. */
  readonly labels: readonly string[]
}

export async function parseMail(
  { source, size, receivedAt, labels }: FetchedMail,
  { maxBytes, includeBody }: { readonly maxBytes: number; readonly includeBody: boolean },
): Promise<Mail> {
  const headEnd = findHeadEnd(source)
  const { root, isWhole = false } = (await parse(source, headEnd)) ?? {}
  const header = (name: string) => root?.headers.find(({ key }) => key === name)?.value ?? ''
  const { text, isCut } = root === undefined ? nothing : readOr(() => readShownText(root, reader), nothing)
  const attachments = root === undefined ? [] : readOr(() => listAttachments(root, reader), [])
  const shown = includeBody ? buildBody(text, attachments, maxBytes) : { body: '', isCut: false }
  const messageId = header('message-id')
  const facts = [messageId, header('from'), header('date'), header('subject')]
  return {
    id: digest(...facts, source.subarray(headEnd)),
    threadId: digest(findThreadRoot(header('references') || header('in-reply-to') || messageId) ?? facts.join('\n')),
    from: readHeaderText(header('from')),
    to: readHeaderText(header('to')),
    subject: readHeaderText(header('subject')),
    date: toIsoDate(receivedAt),
    snippet: cut(
      text
        .slice(0, snippetChars * 10)
        .replaceAll(/\s+/g, ' ')
        .trim(),
      snippetChars,
    ),
    body: shown.body,
    bodyTruncated: includeBody && (isCut || !isWhole || size > source.length || shown.isCut),
    attachments,
    labels: labels.slice(0, maxLabels).map((label) => cut(label, labelChars)),
  }
}

/**
 * A mail is known by its Message-ID together with what it says. With the Message-ID alone, a stranger who knows or guesses that of another mail
 * could send one before it, and the other mail would count as repeated.
 */
function digest(...parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(createHash('sha256').update(part).digest())
  return hash.digest('hex').slice(0, 32)
}

/** The first Message-ID in a list. */
function findThreadRoot(ids: string): string | undefined {
  return /<[^<>\s]{1,1000}>/.exec(ids)?.[0]
}

/** The place after the first empty line. */
function findHeadEnd(source: Uint8Array): number {
  for (let at = source.indexOf(lineFeed); at !== -1; at = source.indexOf(lineFeed, at + 1)) {
    if (source[at + 1] === lineFeed) return at + 2
    if (source[at + 1] === carriageReturn && source[at + 2] === lineFeed) return at + 3
  }
  return source.length
}
const lineFeed = 0x0a
const carriageReturn = 0x0d

/** A part in the tree of the parser. Its types leave the tree out; the tests notice if another version has another one. */
type MimeNode = {
  readonly childNodes: readonly MimeNode[]
  readonly contentType: { readonly parsed: StructuredHeader }
  readonly contentDisposition: { readonly parsed: StructuredHeader }
  readonly headers: readonly { readonly key: string; readonly value: string }[]
  getTextContent(): string
}
type StructuredHeader = { readonly value: string; readonly params: Readonly<Record<string, string>> }

const reader: PartReader<MimeNode> = {
  typeOf: ({ contentType }) => contentType.parsed.value,
  isAttachment({ contentType, contentDisposition }) {
    const { value, params } = contentDisposition.parsed
    return value === 'attachment' || Boolean(params['filename'] || contentType.parsed.params['name'])
  },
  partsOf: ({ childNodes }) => childNodes,
  textOf: (part) => part.getTextContent().slice(0, maxTextChars),
  fileOf: ({ contentType, contentDisposition }) => ({
    name: readHeaderText(contentDisposition.parsed.params['filename'] || contentType.parsed.params['name'] || ''),
  }),
}

/** `isWhole`: all parts were read. A mail whose parts cannot be read has only its headers. Undefined if they cannot be read either. */
async function parse(source: Uint8Array, headEnd: number): Promise<{ root: MimeNode; isWhole: boolean } | undefined> {
  const end = findLinesEnd(source)
  const whole = await buildTree(source.subarray(0, end))
  if (whole !== undefined) return { root: whole, isWhole: end === source.length }
  // without its body, the headers are a mail that cannot nest
  const head = await buildTree(source.subarray(0, Math.min(headEnd, maxHeadBytes, end)))
  return head && { root: head, isWhole: false }
}

async function buildTree(source: Uint8Array): Promise<MimeNode | undefined> {
  const parser = new PostalMime(limits)
  try {
    await parser.parse(source)
    return (parser as unknown as { readonly root: MimeNode }).root
  } catch {
    return undefined
  }
}

/** Where the lines become too many. */
function findLinesEnd(source: Uint8Array): number {
  let lines = 0
  for (let at = source.indexOf(lineFeed); at !== -1; at = source.indexOf(lineFeed, at + 1)) {
    lines += 1
    if (lines === maxLines) return at + 1
  }
  return source.length
}
