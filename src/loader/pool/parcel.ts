// All calls of a turn as one message. The main thread pays for each byte once: callers keep their bodies, and nothing is cloned
// field by field.
import { isAscii } from 'node:buffer'
import type { BundlePost, CallPost, ToWorker } from '../worker/messages.ts'
import type { TransformCall } from '../../model/transform.ts'

/** Bodies that go as a text, together. */
const textBytes = 16 * 1024

/** A call with its number, as a thread has it in flight. */
type Numbered = {
  readonly seq: number
  readonly job: { readonly bundle: BundlePost; readonly export: string | undefined; readonly call: TransformCall }
}

export function toCallsMessage(batch: readonly Numbered[]): { message: ToWorker; transfer: ArrayBuffer[] } {
  let size = 0
  const posts = batch.map(({ seq, job }): CallPost => {
    const { head, syntax, body } = job.call
    size += body.byteLength
    return {
      seq,
      bundle: job.bundle.id,
      export: job.export,
      syntax,
      size: body.byteLength,
      isAscii: isAscii(body),
      head,
    }
  })
  const calls = JSON.stringify(posts)
  if (size <= textBytes) {
    const bodies = batch.map(({ job }) => toBytesText(job.call.body)).join('')
    return { message: { kind: 'calls', calls, bodies }, transfer: [] }
  }
  // not of the pool that other buffers share: it is given away
  const bodies = Buffer.allocUnsafeSlow(size)
  let at = 0
  for (const { job } of batch) {
    bodies.set(job.call.body, at)
    at += job.call.body.byteLength
  }
  return { message: { kind: 'calls', calls, bodies: bodies.buffer }, transfer: [bodies.buffer] }
}

/** Each byte as a character. */
function toBytesText(body: Uint8Array): string {
  const { buffer, byteOffset, byteLength } = body
  return (Buffer.isBuffer(body) ? body : Buffer.from(buffer, byteOffset, byteLength)).toString('latin1')
}
