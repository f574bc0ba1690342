// The command that the page copies, run by a real bash and curl: it must send the request from which it was made.
import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { isCopyable, toCurl } from '../../../src/inspector/curl.ts'
import type { RequestFields } from '../../../src/model/api/answers.ts'
import { onFileEnd } from '../../file-end.ts'

type Seen = { method: string; url: string; headers: Record<string, string>; body: string }

const seen: Seen[] = []
const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const { method = '', url = '', rawHeaders } = request
    const headers: Record<string, string> = {}
    for (let at = 0; at < rawHeaders.length; at += 2)
      headers[String(rawHeaders[at]).toLowerCase()] = String(rawHeaders[at + 1])
    seen.push({ method, url, headers, body: Buffer.concat(chunks).toString('utf8') })
    response.end()
  })
})
const base = await new Promise<string>((resolve) => {
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    resolve(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/hooks`)
  })
})
const folder = mkdtempSync(join(tmpdir(), 'hookloom-curl-'))
onFileEnd(() => rmSync(folder, { recursive: true }))
onFileEnd(() => new Promise((resolve) => server.close(resolve)))
const secret = join(folder, 'secret')
writeFileSync(secret, 'secret-of-the-operator')

const json = { 'content-type': 'application/json' }

test.each([
  ['@ and the path of a file', `@${secret}`],
  ['@ and standard input', '@-'],
  ['quotes, variables and commands', `it's "$HOME" $(id) \`id\` \\' \\x41 !! !$`],
  ['line breaks, tabs and a return', '{\n\t"a": 1\r\n}\n'],
  ['the end of a paste and other control sequences of a terminal', 'a\u001b[201~\u0007\u009b31m\u007f\u0008 b'],
  ['marks that turn the direction of text', '\u202etxt.exe\u2066 \u200b\u2028é 🎉'],
  ['one quote and a control character', "'\u0001'"],
  ['nothing', ''],
])('the copied command sends a body of %s unchanged', async (_, body) => {
  expect((await run({ body, headers: json })).body).toBe(body)
})

test('the copied command sends any body without a NUL unchanged', async () => {
  const unit = fc.oneof(
    fc.constantFrom("'", '\\', '!', '\n', '\u001b', '@', '$', '"', '`'),
    fc.string({ unit: 'binary' }),
  )
  const bodies = fc.array(unit, { maxLength: 12 }).map((units) => units.join('').replaceAll('\0', ''))
  await fc.assert(
    fc.asyncProperty(bodies, async (body) => {
      expect((await run({ body, headers: json })).body).toBe(body)
    }),
    { numRuns: 25 },
  )
})

test('the copied command sends one request to a URL with ranges, lists and dots', async () => {
  const url = "/hooks/x?ids=[1-3]&of={a,b}&to=a'$(id)&up=/../.."
  expect((await run({ url, headers: json })).url).toBe(url)
  expect((await run({ url: '/hooks/..//[1-2]', headers: json }, '..//[1-2]')).url).toBe('/hooks/..//[1-2]')
})

test('the headers of the copied command keep their bytes, read no file and add no other header', async () => {
  const headers = {
    ...json,
    'x-quotes': `'; touch ${folder}/made; '`,
    'x-file': `@${secret}`,
    'x-latin': 'caf\u00e9 \u009b',
    'x-empty': '',
    'x-tab': 'a\tb',
    [`@${secret}`]: '',
    'x-lines': 'a\r\nx-forged: 1',
  }
  const { headers: sent } = await run({ headers })
  expect(sent).toMatchObject({ ...json, 'x-quotes': headers['x-quotes'], 'x-file': headers['x-file'], 'x-empty': '' })
  expect(sent).toMatchObject({ 'x-latin': headers['x-latin'], 'x-tab': headers['x-tab'] })
  expect(Object.keys(sent).filter((name) => /forged|lines|secret/.test(name))).toEqual([])
  expect(sent['authorization']).toBe('Bearer token of the shell')
})

test('the copied command has a new key, and no header of a browser or a proxy', async () => {
  const noise = { accept: 'text/html', 'accept-language': '*', 'sec-fetch-mode': 'cors', 'x-forwarded-for': '10.0.0.1' }
  const { headers } = await run({
    headers: { ...json, ...noise, 'idempotency-key': 'first', 'x-github-delivery': 'd-1' },
  })
  expect(headers['idempotency-key']).toMatch(/^copy-\d+$/)
  expect(headers['x-github-delivery']).toBe('d-1')
  // curl adds this header
  expect(headers['accept']).toBe('*/*')
  expect(Object.keys(headers).filter((name) => /^(accept-language|sec-|x-forwarded)/.test(name))).toEqual([])
})

test('the copied command adds no content type to a request that had none', async () => {
  expect((await run({ body: 'x' })).headers['content-type']).toBeUndefined()
})

test('every character of the copied command is visible', () => {
  const text = 'a\u001b[201~\u0085\u202e\u2066\u200b'
  const line = toCurl(toRequest({ body: text, url: '/hooks/x?\u009b', headers: { 'x-a': text } }), base, 'x')
  expect(line.replaceAll(' \\\n  ', ' ')).toMatch(/^[\x20-\x7e]+$/)
})

test('a body with a NUL, or with bytes that are not text, is not copied as a curl command', () => {
  expect(isCopyable(toRequest({ body: 'a\0b' }))).toBe(false)
  expect(isCopyable({ ...toRequest({ body: 'AAE=' }), encoding: 'base64' })).toBe(false)
  expect(isCopyable(toRequest({ body: 'a' }))).toBe(true)
})

function toRequest(fields: Partial<RequestFields>): RequestFields {
  return {
    method: 'POST',
    url: '/hooks/x',
    headers: {},
    query: {},
    verifiedBy: null,
    hasSignedId: false,
    body: '{}',
    encoding: 'utf8',
    ...fields,
  }
}

async function run(fields: Partial<RequestFields>, hook = 'x'): Promise<Seen> {
  const line = toCurl(toRequest(fields), base, hook)
  seen.length = 0
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, HOOKLOOM_TOKEN: 'token of the shell' }
  await promisify(execFile)('bash', ['-c', line], { env, cwd: folder })
  const [only, ...more] = seen
  expect(more).toEqual([])
  if (only === undefined) throw new Error('nothing was sent')
  return only
}
