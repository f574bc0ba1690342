// Makes one message of several calls. The callers keep their bodies, and nothing is cloned field by field.
import { isAscii } from 'node:buffer'
import type { BundlePost, CallPost, ToWorker } from '../worker/messages.ts'
import type { TransformCall } from '../../model/transform.ts'

/** The maximum total size of bodies that are sent as a text. */
const textBytes = 16 * 1024

/** A call with its number in the thread. */
type NumberedCall = {
  readonly seq: number
  readonly task: { readonly bundle: BundlePost; readonly export: string | undefined; readonly call: TransformCall }
}

export function toBatchMessage(batch: readonly NumberedCall[]): { message: ToWorker; transfer: ArrayBuffer[] } {
  let size = 0
  const posts = batch.map(({ seq, task }): CallPost => {
    const { head, syntax, body, serves, readState } = task.call
    size += body.byteLength
    return {
      seq,
      bundle: task.bundle.id,
      export: task.export,
      syntax,
      size: body.byteLength,
      isAscii: isAscii(body),
      head,
      serves,
      hasState: readState !== undefined,
    }
  })
  const calls = JSON.stringify(posts)
  if (size <= textBytes) {
    const bodies = batch.map(({ task }) => toBytesText(task.call.body)).join('')
    return { message: { kind: 'calls', calls, bodies }, transfer: [] }
  }
  // a separate buffer, because it is transferred: Node's pool is shared with other buffers
  const bodies = Buffer.allocUnsafeSlow(size)
  let at = 0
  for (const { task } of batch) {
    bodies.set(task.call.body, at)
    at += task.call.body.byteLength
  }
  return { message: { kind: 'calls', calls, bodies: bodies.buffer }, transfer: [bodies.buffer] }
}

/** Maps each byte to a character. */
function toBytesText(body: Uint8Array): string {
  const { buffer, byteOffset, byteLength } = body
  return (Buffer.isBuffer(body) ? body : Buffer.from(buffer, byteOffset, byteLength)).toString('latin1')
}
