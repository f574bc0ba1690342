// esbuild follows a `sourceMappingURL` comment to whatever file it names, past every plugin: out of the transforms directory,
// and into a FIFO that nobody writes to. So the comment is made to name nothing.

const comment = /\/[/*][#@] sourceMappingURL=/

/** The last such comment of a file counts. This one does not decode, so esbuild warns of it and goes on. */
const nowhere = '\n//# sourceMappingURL=data:application/json;base64,!'

/** The same program without a source map. The comment itself stays: the same characters may be text of the program. */
export function withoutSourceMap(contents: Uint8Array): Uint8Array {
  const bytes = Buffer.from(contents.buffer, contents.byteOffset, contents.byteLength)
  if (!bytes.includes(' sourceMappingURL=') || !comment.test(bytes.toString('latin1'))) return contents
  return Buffer.concat([bytes, Buffer.from(nowhere)])
}
