// What relay and home send each other: JSON heads with bytes behind them. A length has four bytes.
import { z } from 'zod'

/** The head of an envelope that is handed over. `number`: null for one that is not stored. */
export const Handed = z.strictObject({ number: z.int().positive().nullable() })
/** The head of the body of an answer. */
export const Answered = z.strictObject({
  id: z.string(),
  status: z.int().min(200).max(599),
  headers: z.record(z.string(), z.string()),
})

export function joinHead(head: object, ...bytes: readonly Uint8Array[]): Buffer {
  return Buffer.concat([joinParts([Buffer.from(JSON.stringify(head))]), ...bytes])
}

/** Throws a `SyntaxError` or `RangeError` if there is no head. */
export function splitHead(bytes: Buffer): { readonly head: unknown; readonly rest: Buffer } {
  const end = 4 + bytes.readUInt32BE()
  if (end > bytes.length) throw new RangeError('The head is cut.')
  return { head: JSON.parse(bytes.toString('utf8', 4, end)), rest: bytes.subarray(end) }
}

/** Each part with its length before it. */
export function joinParts(parts: readonly Uint8Array[]): Buffer {
  return Buffer.concat(
    parts.flatMap((part) => {
      const length = Buffer.alloc(4)
      length.writeUInt32BE(part.length)
      return [length, part]
    }),
  )
}

/** Throws a `RangeError` if a part is cut. */
export function splitParts(bytes: Buffer): Buffer[] {
  const parts: Buffer[] = []
  for (let at = 0; at < bytes.length;) {
    const end = at + 4 + bytes.readUInt32BE(at)
    if (end > bytes.length) throw new RangeError('A part is cut.')
    parts.push(bytes.subarray(at + 4, end))
    at = end
  }
  return parts
}
