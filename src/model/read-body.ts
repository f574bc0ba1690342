// The body of a message on the wire, read to its end or up to a limit: who sent it may be anybody, and memory is ours.

/** Undefined where it is over the limit; the rest of it is not taken. Throws where the connection is cut. */
export async function readBody(body: AsyncIterable<Uint8Array> | null, maxBytes: number): Promise<string | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += chunk.length
    if (size > maxBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
