// The files of the page, the exchange of its code for a key, and the proof by which the page recognises its gateway.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type Router from '@koa/router'
import type { Context } from 'koa'
import { Problem } from '../../../core/model/problem.ts'
import { readToken } from '../admission.ts'
import { toIsoTime } from '../../deliveries/records.ts'
import { sendAnswer } from '../server.ts'
import type { ApiParts } from './parts.ts'
import { nameKey, type PageKeys } from './page-keys.ts'
import type { Handlers } from './handlers.ts'

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

type PageParts = Pick<ApiParts, 'auditor'> & { readonly keys: PageKeys }

export function addPageFiles(router: Router): void {
  for (const [path, [file, type]] of Object.entries(files)) {
    router.get(path, (ctx) => sendFile(ctx, file, type))
  }
}

export function handlePage({ keys, auditor }: PageParts) {
  return {
    'POST /api/page/code': () => {
      const { text, until } = keys.issueCode()
      return { code: text, until: toIsoTime(until) }
    },
    'POST /api/page/key': ({ ctx }) => {
      const given = readToken(ctx.req.rawHeaders)
      const issued = given.kind === 'token' ? keys.exchange(given.token) : undefined
      if (issued === undefined) {
        throw new Problem(
          'unauthorized',
          'This link was used already, or is older than a minute. "hookloom open" makes another one.',
        )
      }
      const by = { kind: 'code', name: 'hookloom open' } as const
      auditor.note({ by, act: 'page.key', target: nameKey(issued.text), outcome: 'done' })
      return { key: issued.text, until: toIsoTime(issued.until) }
    },
    'POST /api/page/proof': async ({ body }) => {
      const { key, challenge } = await body()
      return { proof: keys.prove(Buffer.from(key, 'hex'), challenge) }
    },
  } satisfies Partial<Handlers>
}

const pageFiles = new Map<string, string>()

function sendFile(ctx: Context, file: string, type: string): void {
  ctx.set({
    'content-type': `${type}; charset=utf-8`,
    'content-security-policy': policy,
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'x-frame-options': 'DENY',
    'cache-control': 'no-cache',
  })
  sendAnswer(ctx, { status: 200, body: readPageFile(file) })
}

function readPageFile(file: string): string {
  const known = pageFiles.get(file)
  if (known !== undefined) return known
  try {
    const text = readFileSync(createRequire(import.meta.url).resolve(`#inspector/${file}`), 'utf8')
    pageFiles.set(file, text)
    return text
  } catch (cause) {
    throw new Problem('not-found', 'The page is not built. Run "npm run build" in the checkout.', { cause })
  }
}
