// The files that an item of a source offers. Their contents are not stored: a delivery and its runs only know where the source finds them again.
import { z } from 'zod'

/** A file of an item, such as an attachment of a mail. */
export type SourceFile = {
  /** The name, as the other side gave it. The gateway makes a safe one of it. */
  readonly name: string
  /** How `readFiles` finds the file again: 1 to 2,000 characters, without a credential. */
  readonly ref: string
  /** The size in bytes, if it is known: a file that is too large is then not fetched. */
  readonly bytes?: number | undefined
}
export const SourceFile: z.ZodType<SourceFile> = z.object({
  name: z.string(),
  ref: z.string().min(1).max(2_000),
  bytes: z.number().nonnegative().optional(),
})

/** The files of one item. `account`: the source must still watch it. `others`: how many more files the item has, beyond `maxFiles`. */
export const ItemFiles = z.object({
  source: z.string(),
  account: z.string(),
  files: z.array(SourceFile),
  others: z.number(),
})
export type ItemFiles = z.infer<typeof ItemFiles>

/** The files that a turn gets, the bytes of each, and the bytes of all. */
export const maxFiles = 20
export const maxFileBytes = 10 * 1024 * 1024
export const maxTurnBytes = 25 * 1024 * 1024

const maxNameChars = 200

/** The files of an item, as its delivery keeps them; undefined if it has none. */
export function toItemFiles(
  files: readonly SourceFile[],
  { source, account }: Pick<ItemFiles, 'source' | 'account'>,
): ItemFiles | undefined {
  if (files.length === 0) return undefined
  const kept = files.slice(0, maxFiles).map((file) => ({ ...file, name: shorten(file.name) }))
  return { source, account, files: kept, others: files.length - kept.length }
}

/** The start of a name, and its end, which has the extension. */
function shorten(name: string): string {
  return name.length <= maxNameChars ? name : name.slice(0, maxNameChars - 20) + name.slice(-20)
}

/**
 * Reads files of a source: one entry for each of `refs`, in their order; undefined for a file that the source no longer has. An entry of more than
 * `maxBytes` is a file that is too large. Returns a sentence if the source can never read them. Throws a `SourceFailure` or a `Problem` for what may pass.
 */
export type ReadSourceFiles = (
  wanted: Pick<ItemFiles, 'source' | 'account'> & FileLimits & { readonly refs: readonly string[] },
) => AsyncIterable<Uint8Array | undefined> | string

export type FileLimits = {
  /** The bytes that a file may have. Of a larger one, it is enough to read one byte more. */
  readonly maxBytes: number
  /** Aborted when the run ends, or when its files took over five minutes. */
  readonly signal: AbortSignal
}
