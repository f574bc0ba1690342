// Parses a multipart form. Node parses it, because the whole body is already in memory.
import { MIMEType } from 'node:util'
import type { JsonObject, JsonValue } from '../base/json.ts'
import { buildFormPayload } from './body.ts'
import { type SentBody, findBoundary } from './syntax.ts'
import { Problem } from './problem.ts'

const maxParts = 1_000

/**
 * Parses a multipart form into the payload that `parseBody` builds from other forms. A file becomes its name, type and size. The boundary
 * of a proved form is read from its first line, because signatures do not cover the media type. Throws `body-invalid`.
 */
export async function parseMultipart(
  bytes: Uint8Array<ArrayBuffer>,
  { contentType = '', isProved }: Omit<SentBody, 'bytes'>,
): Promise<JsonValue> {
  const boundary = isProved ? findBoundary(bytes) : readDeclaredBoundary(contentType)
  if (boundary === undefined) throw toIncompleteProblem()
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  // each part costs about 10 µs on the main thread
  let parts = 0
  for (let at = body.indexOf(`--${boundary}`); at >= 0; at = body.indexOf(`--${boundary}`, at + 1)) {
    parts += 1
    if (parts > maxParts + 1) throw new Problem('body-invalid', `The form has more than ${maxParts} parts.`)
  }
  // the boundary whose parts were counted: the parser must not find another one in the media type
  const headers = { 'content-type': `multipart/form-data; boundary="${boundary}"` }
  const form = await new Response(bytes, { headers }).formData().catch(() => undefined)
  if (form === undefined) throw toIncompleteProblem()
  const fields = [...form].map(([name, value]): [string, string | JsonObject] =>
    typeof value === 'string' ? [name, value] : [name, { name: value.name, type: value.type, size: value.size }],
  )
  // invalid bytes of a field become U+FFFD
  const isReplaced = fields.some(([, value]) => typeof value === 'string' && value.includes('\uFFFD'))
  if (isReplaced && !body.includes('\uFFFD')) throw new Problem('body-invalid', 'A field of the form is not UTF-8.')
  return buildFormPayload(fields)
}

/** The boundary in a media type. Undefined without one, and for one that MIME readers may read differently, or with more than 200 characters. */
function readDeclaredBoundary(contentType: string): string | undefined {
  try {
    const boundary = new MIMEType(contentType).params.get('boundary') ?? ''
    return /^[ !#-[\]-~]{1,200}$/.test(boundary) ? boundary : undefined
  } catch {
    return undefined
  }
}

function toIncompleteProblem(): Problem {
  return new Problem('body-invalid', 'The body is not a complete multipart form.')
}
