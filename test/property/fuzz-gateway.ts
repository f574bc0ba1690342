// Requests of strangers to a whole gateway: each gets a sound answer, and the gateway goes on.
import { expectSound } from '../e2e/answers.ts'
import { type Inside, startInside } from '../e2e/inside.ts'
import { bearer, exchange, type Headers, json, toRequest } from '../e2e/wire.ts'
import { findThrown, type Target } from './mutations.ts'

const targets = ['wake', 'agent', 'any', 'each', 'code', 'github', 'runs', 'unknown'].map((name) => `/hooks/${name}`)
const bodies = [
  '{"text":"hi"}',
  '{"message":"hi","deliver":false}',
  '{"a":{"b":[{"x":1e400}]},"n":12345678901234567890}',
  'a=1&b%5B%5D=2&payload=%7B%22a%22%3A1%7D',
  '--B\r\nContent-Disposition: form-data; name="x"\r\n\r\nhi\r\n--B--\r\n',
  '<?xml version="1.0"?><a b="c">d</a>',
  '',
  '{"items":[{"id":1,"title":"a"},{"id":2}]}',
]
const types = [
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=B',
  'text/plain; charset=utf-16',
  'text/xml',
  'a/b+json;charset=x',
]
const fields: Headers = [
  ['idempotency-key', 'a'],
  ['prefer', 'respond-async, wait=0'],
  ['content-encoding', 'gzip'],
  ['traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'],
  ['accept', 'text/event-stream'],
  ['origin', 'https://x.example'],
  ['x-a', 'b'],
  ['x-github-event', 'push'],
  ['x-hub-signature-256', `sha256=${'ab'.repeat(32)}`],
  ['cookie', 'a=b'],
]
const pieces = [
  '%', '%00', '%2f', '%2e%2e', '%ff', '/', '/..', '?', '&', '=', ';', '+', '\u00e9', '\u00ff', '"', '<', '[]', '.', '__proto__',
  '-1', '1e999', 'NaN', 'null', '{', '}', '[', ']', ',', ':', '\\u0000', '\\ud800', '"__proto__":{"a":1},', '{{', ' ', '\t', '--B', '\r\n',
  'filename="', '<!ENTITY a "b">', 'charset=utf-7', ';q=0', '*', 'wait=0', 'br', 'Bearer ',
] // prettier-ignore

export async function createGatewayTarget(): Promise<{
  readonly target: Target
  readonly gateway: Inside
  readonly failures: string[]
}> {
  const failures: string[] = []
  const skip = () => {}
  const gateway = await startInside({
    config: {
      // each request has another client, because a client with wrong tokens is refused for a while
      server: { trustedProxies: ['127.0.0.1/32'] },
      hooks: {
        mappings: [
          {
            match: { path: 'any' },
            accept: ['text', 'xml', 'empty'],
            action: 'wake',
            textTemplate: 'x {{payload}} {{a.b[0]["x"]}} {{headers.x-a}} {{query.q}} {{path}} {{event}}',
          },
          { match: { path: 'each' }, forEach: 'items', action: 'wake', textTemplate: '{{title}} {{payload}}' },
          { match: { path: 'code' }, accept: ['text'], transform: { module: 'echo.ts' }, deliver: false },
          { match: { path: 'github' }, verify: { scheme: 'github', secret: 'abcdefghijklmnopqrstuv' }, deliver: false },
        ],
      },
    },
    files: {
      'hooks/transforms/echo.ts': 'export default ({ payload }) => ({ message: JSON.stringify(payload) || "x" })\n',
    },
    log: { debug: skip, info: skip, warn: skip, error: (_, message) => void failures.push(message) },
  })
  const target: Target = {
    name: 'requests to a gateway',
    cases: 700,
    async tryOne(chance) {
      const { below, pick } = chance
      const change = (text: string) => (below(2) === 0 ? text : chance.mutate(text, pieces))
      // a name or a value with a line break would be another header, which is for `fuzz-http.ts`
      const toLine = (text: string) => text.replaceAll(/[\r\n\0]/g, '')
      const some = Array.from({ length: below(4) }, () => pick(fields)).map(
        ([name, value]) => [name, toLine(change(value))] as const,
      )
      const type = below(2) === 0 ? json : [['content-type', pick(types)] as const]
      const bytes = toRequest({
        method: pick(['POST', 'POST', 'POST', 'POST', 'POST', 'GET', 'HEAD', 'OPTIONS', 'PUT', 'QUERY']),
        target: toLine(below(4) > 0 ? pick(targets) : change(`${pick(targets)}?q=1`)).replaceAll(' ', '') || '/',
        headers: [
          ...(below(8) > 0 ? bearer : []),
          ...type,
          ...some,
          ['connection', 'close'],
          ['x-forwarded-for', `10.${below(256)}.${below(256)}.${below(256)}`],
        ],
        body: Buffer.from(change(pick(bodies)), pick(['utf8', 'latin1'] as const)),
      })
      const isHead = bytes.toString('latin1', 0, 5) === 'HEAD '
      const fault = await findThrown(async () => {
        const { replies } = await exchange(gateway.port, bytes, { until: 'all', head: isHead })
        if (replies.length !== 1) throw new Error(`${replies.length} answers`)
        for (const reply of replies) expectSound(reply)
      }, bytes.toString('latin1'))
      return fault ?? failures.map((message) => `logged: ${message}: ${JSON.stringify(bytes.toString('latin1'))}`)[0]
    },
  }
  return { target, gateway, failures }
}
