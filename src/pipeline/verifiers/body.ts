// The body as JSON, for proofs that stand inside of it and times that are read once the bytes are proven.
import { isJsonObject, type JsonValue } from '../../base/json.ts'
import { parseBody } from '../../model/parse-body.ts'
import type { VerifyRequest } from '../../model/verifier.ts'
import { parsePath, readPath } from '../path.ts'

/** Undefined: not JSON, too deep, or of another media type. */
export function tryBody(body: Uint8Array): JsonValue | undefined {
  try {
    // the media type says nothing about who sent it
    return parseBody(body, 'json')
  } catch {
    return undefined
  }
}

/** The text or number at a path of the body; '' where there is none. */
export function toBodyTimestamp(request: VerifyRequest, path: string): string {
  const body = tryBody(request.rawBody)
  return body === undefined ? '' : toText(readPath(body, parsePath(path)))
}

/** Own text and numbers of an object by name; '' for anything else. */
export function readText(value: JsonValue | undefined, name: string): string {
  return isJsonObject(value) && Object.hasOwn(value, name) ? toText(value[name]) : ''
}

function toText(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : ''
}
