// Reads the file for `run`, `send` and `new`: a payload, or a fixture {request: {headers, payload}, expect}.
import { createReadStream } from 'node:fs'
import { isJsonObject, type SentObject, type SentValue } from '../../base/json.ts'
import { stringify } from '../../base/sent-json.ts'
import { Problem } from '../../core/model/problem.ts'
import { toHeaders } from '../../gateway/http/admission.ts'
import { dropCredentials } from '../../core/mapping/delivery.ts'
import { parseBody } from '../../core/model/body.ts'
import type { Context } from '../terminal/context.ts'

export type RequestInput = {
  /** With lower-case names and without credentials. There is always a content type. */
  readonly headers: Readonly<Record<string, string>>
  /** The headers that the command line sets. `headers` includes them. */
  readonly fixed: Readonly<Record<string, string>>
  /** The payload, serialized as it is sent. */
  readonly body: string
}

/** Reads a payload or a fixture. `file`: `-` is standard input. `headers`: each is `name: value`; they replace headers of a fixture. */
export async function readInput(
  { stdin }: Pick<Context, 'stdin'>,
  { file, headers }: { file: string; headers: readonly string[] },
): Promise<RequestInput> {
  return parseInput(await readBytes(stdin, file), { file, headers })
}

/** Reads the headers and the payload of a payload or a fixture. `file`: `-` is standard input. */
export async function readRequest(
  { stdin }: Pick<Context, 'stdin'>,
  file: string,
): Promise<{ headers: Record<string, string>; payload: SentValue }> {
  const value = parsePayloadBytes(await readBytes(stdin, file), file)
  const request = findFixtureRequest(value)
  const pairs = request === undefined ? [] : readHeaderPairs(request, file)
  const headers = toHeaders(pairs.filter(([name]) => !isHopHeader(name)).flat())
  return {
    headers: { 'content-type': 'application/json', ...headers },
    payload: (request === undefined ? value : request['payload']) ?? null,
  }
}

/** Far more than a webhook has. Without a limit, an endless pipe would be read until the memory is full. */
const maxMegabytes = 100

async function readBytes(stdin: Context['stdin'], file: string): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let left = maxMegabytes * 1_000_000
  try {
    for await (const chunk of file === '-' ? stdin : createReadStream(file)) {
      chunks.push(chunk)
      left -= chunk.length
      if (left < 0) throw new Problem('usage-invalid', `${file} cannot be read: it has more than ${maxMegabytes} MB.`)
    }
    return Buffer.concat(chunks)
  } catch (error) {
    if (error instanceof Problem) throw error
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'it failed'
    const why = code === 'ENOENT' ? 'the file does not exist' : code
    throw new Problem('usage-invalid', `${file} cannot be read: ${why}.`, { cause: error })
  }
}

/** Like `readInput`, from bytes. `file` is only named in messages. */
export function parseInput(
  bytes: Buffer,
  { file, headers }: { file: string; headers: readonly string[] },
): RequestInput {
  const value = parsePayloadBytes(bytes, file)
  const request = findFixtureRequest(value)
  const given = request === undefined ? [] : readHeaderPairs(request, file)
  const asked = headers.map(parseHeader)
  const names = new Set(asked.map(([name]) => name.toLowerCase()))
  const pairs = [...given.filter(([name]) => !names.has(name.toLowerCase()) && !isHopHeader(name)), ...asked]
  const all = { 'content-type': 'application/json', ...dropCredentials(toHeaders(pairs.flat()), new Set()) }
  const fixed = Object.fromEntries(Object.entries(all).filter(([name]) => names.has(name)))
  const body = serializeBody(request === undefined ? value : request['payload'], all['content-type'])
  return { headers: all, fixed, body }
}

function parsePayloadBytes(bytes: Buffer, file: string): SentValue {
  try {
    return parseBody(bytes, 'json')
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    throw new Problem(error.code, `${file}: ${error.message}`, { cause: error })
  }
}

/** The request of a fixture; undefined for a payload. A payload may have a field `request` too; in a fixture, `request` contains `payload`,
 * and only known fields are next to it. */
function findFixtureRequest(value: SentValue): SentObject | undefined {
  if (!isJsonObject(value)) return undefined
  const { request, ...rest } = value
  const isFixture = request !== undefined && isJsonObject(request) && Object.hasOwn(request, 'payload')
  return isFixture && Object.keys(rest).every((key) => ['expect', 'title', 'about'].includes(key)) ? request : undefined
}

function readHeaderPairs({ headers = {} }: SentObject, file: string): [string, string][] {
  const isMap = isJsonObject(headers) && Object.values(headers).every((value) => typeof value === 'string')
  if (!isMap) throw new Problem('payload-invalid', `${file}: request.headers must be an object of strings.`)
  return Object.entries(headers).map(([name, value]) => [name, String(value)])
}

/** Whether a header belongs to the recorded connection, and not to the delivery. */
function isHopHeader(name: string): boolean {
  return /^(host|connection|content-length|transfer-encoding|content-encoding|accept-encoding|expect)$/i.test(name)
}

function parseHeader(text: string): [string, string] {
  const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):\s*([\t\x20-\x7e\x80-\xff]*)$/.exec(text) ?? []
  if (name === undefined || value === undefined) {
    throw new Problem('usage-invalid', '--header takes "name: value", as in --header "x-github-event: push".')
  }
  return [name, value.trim()]
}

function serializeBody(payload: SentValue | undefined, contentType: string | undefined): string {
  const json = stringify(payload)
  // GitHub and Slack can put the JSON into a field of a form
  const isForm = /^application\/x-www-form-urlencoded\b/i.test(contentType ?? '')
  return isForm ? new URLSearchParams({ payload: json }).toString() : json
}
