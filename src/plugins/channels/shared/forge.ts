// The parts that the channels for GitHub and GitLab share: the text of a comment with its hidden marker, and the search for this marker before a
// second post.
import { z } from 'zod'
import type { Outgoing, SendResult, TextFormat } from '../../../model/channel.ts'
import { toMarker } from '../../../model/comment.ts'
export { signNonce, toCommentId } from '../../../model/comment.ts'
import { splitMarkdown } from './chunks.ts'
import { render } from './markdown.ts'
import { forgeMarkdown } from './markup.ts'

/** The maximum length of a comment. GitHub takes 65,536 characters, GitLab a million. */
const limit = 60_000
export const pageSize = 100
/** The maximum number of pages of comments that are searched for a marker. */
const maxPages = 20
/** The time by which the clock of GitHub or GitLab may be behind the clock of this machine. */
export const maxClockSkewMs = 600_000

/** An answer with the id of a comment, a status or a user. */
export const IdAnswer = z.object({ id: z.int() })

export function splitComment(text: string, format?: TextFormat): string[] {
  return splitMarkdown(text, { limit, measure: (piece) => render(piece, forgeMarkdown, format).length })
}

export function toCommentBody({ text, format, nonce }: Pick<Outgoing, 'text' | 'format' | 'nonce'>): string {
  return `${render(text, forgeMarkdown, format)}\n\n${toMarker(nonce)}`
}

/** A page of comments. `isLast`: no later page can have the comment. */
export type CommentPage =
  | {
      readonly kind: 'page'
      readonly comments: readonly { readonly id: number; readonly body?: string | null | undefined }[]
      readonly isLast?: boolean
    }
  | { readonly kind: 'failed'; readonly failed: SendResult }

/**
 * Finds the comment that has the marker. Returns undefined if no page that is read has it, and the failure if a page could not be read. The
 * first page is 1.
 */
export async function findComment(
  nonce: string,
  readPage: (page: number) => Promise<CommentPage>,
): Promise<SendResult | undefined> {
  for (let page = 1; page <= maxPages; page += 1) {
    const read = await readPage(page)
    if (read.kind === 'failed') return read.failed
    const found = read.comments.find(({ body }) => body?.includes(toMarker(nonce)) === true)
    if (found !== undefined) return { kind: 'sent', id: String(found.id) }
    if (read.isLast === true || read.comments.length < pageSize) return undefined
  }
  return undefined
}
