// The files that an item of a source offers. Their contents are not stored: a delivery and its runs only know where the source finds them again.
import { z } from 'zod'
import { tryParseJson } from '../base/json.ts'

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

/**
 * The header of a delivery that has its `ItemFiles` as JSON. A colon cannot be a part of a name that is sent over HTTP, so only a source of the gateway
 * sets it: a sender must not make an agent read files that it chooses.
 */
const filesHeader = ':source-files'

type Headers = Readonly<Record<string, string>>

/** The header of the files of an item; none if it has no files. */
export function buildFilesHeader(
  files: readonly SourceFile[],
  { source, account }: Pick<ItemFiles, 'source' | 'account'>,
): Headers {
  if (files.length === 0) return {}
  const kept = files.slice(0, maxFiles).map((file) => ({ ...file, name: shorten(file.name) }))
  const item: ItemFiles = { source, account, files: kept, others: files.length - kept.length }
  return { [filesHeader]: JSON.stringify(item) }
}

/** The start of a name, and its end, which has the extension. */
function shorten(name: string): string {
  return name.length <= maxNameChars ? name : name.slice(0, maxNameChars - 20) + name.slice(-20)
}

/** The files that the source of a delivery offered with it. `hook`: its name, which is also that of the source. */
export function readFilesHeader(headers: Headers, hook: string): ItemFiles | undefined {
  const text = headers[filesHeader]
  if (text === undefined) return undefined
  const { data } = ItemFiles.safeParse(tryParseJson(text))
  return data?.source === hook ? data : undefined
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
