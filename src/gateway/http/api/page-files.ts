// The files of the page. The build compresses each of them, so that a request costs no compression. A browser asks for a file again at each load, and
// gets 304 while it is the same.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type Router from '@koa/router'
import type { Context } from 'koa'
import { Problem } from '../../../core/model/problem.ts'
import { dropRest } from '../body.ts'

/** The content security policy: no other origin, nothing inline, no frame around the page, and no text that becomes markup. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const files: Readonly<Record<string, readonly [file: string, type: string]>> = {
  '/': ['index.html', 'text/html'],
  '/inspector/page.js': ['page.js', 'text/javascript'],
  '/inspector/page.css': ['page.css', 'text/css'],
  '/inspector/icon.svg': ['icon.svg', 'image/svg+xml'],
  '/inspector/icon-alert.svg': ['icon-alert.svg', 'image/svg+xml'],
}

/** The content codings of the build, with the ends of their files. The first one that the client accepts is sent: Brotli is a fifth smaller. */
const codings = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const

type PageFile = {
  readonly bytes: Buffer
  /** Differs between the codings of a file: it names bytes. */ readonly etag: string
}

export function addPageFiles(router: Router): void {
  for (const [path, [file, type]] of Object.entries(files)) {
    router.get(path, (ctx) => sendFile(ctx, file, type))
  }
}

function sendFile(ctx: Context, file: string, type: string): void {
  const [coding, suffix] = codings.find(([each]) => ctx.acceptsEncodings(each) === each) ?? [undefined, '']
  const { bytes, etag } = readPageFile(`${file}${suffix}`)
  ctx.set({
    'content-type': `${type}; charset=utf-8`,
    'content-security-policy': policy,
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'x-frame-options': 'DENY',
    // kept, but never used without asking: a page of an older gateway must not call a newer one
    'cache-control': 'no-cache',
    vary: 'accept-encoding',
    etag,
  })
  ctx.status = 200
  if (ctx.fresh) {
    ctx.status = 304
  } else {
    if (coding !== undefined) ctx.set('content-encoding', coding)
    ctx.body = bytes
  }
  if (!ctx.req.complete) dropRest(ctx.req, ctx.res)
}

const pageFiles = new Map<string, PageFile>()

function readPageFile(file: string): PageFile {
  const known = pageFiles.get(file)
  if (known !== undefined) return known
  try {
    const bytes = readFileSync(createRequire(import.meta.url).resolve(`#inspector/${file}`))
    const read = { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"` }
    pageFiles.set(file, read)
    return read
  } catch (cause) {
    throw new Problem('not-found', 'The page is not built. Run "npm run build" in the checkout.', { cause })
  }
}
