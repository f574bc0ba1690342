import { expect, it } from 'vitest'
import { webhookChannel } from '../../../../src/plugins/channels/webhook.ts'
import { createFetch, toOutgoing, openChannel, sectionOf } from './stage.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const section = sectionOf(webhookChannel)

function createChannel(
  endpoints: Record<string, object>,
  { to, fetch }: { to?: string; fetch?: typeof globalThis.fetch } = {},
) {
  return openChannel(webhookChannel, section.parse({ endpoints, ...(to && { to }) }), fetch && { fetch })
}

const ops = { url: 'https://ops.example.com/in?key=hidden', secret }

it('a message must name its endpoint only if several endpoints are configured without a default', () => {
  expect(createChannel({ ops }).whyNot(undefined)).toBeUndefined()
  expect(createChannel({ ops, dev: ops }).whyNot(undefined)).toMatch(/set channels\.webhook\.to.*\("ops", "dev"\)/)
  expect(createChannel({ ops, dev: ops }, { to: 'dev' }).whyNot(undefined)).toBeUndefined()
  expect(createChannel({}).whyNot(undefined)).toMatch(/endpoints is empty/)
})

it.each(['https://evil.example/', 'constructor', '__proto__', 'OPS', ''])(
  'the recipient "%s" names no endpoint and is refused without a call',
  async (to) => {
    const called: unknown[] = []
    const fetch: typeof globalThis.fetch = async (url) => {
      called.push(url)
      return new Response()
    }
    const one = createChannel({ ops }, { fetch })
    expect(one.whyNot(to)).toMatch(/the name of an endpoint/)
    expect(await one.send(toOutgoing({ to }))).toMatchObject({ kind: 'permanent' })
    expect(called).toEqual([])
  },
)

it.each([
  [301, 'permanent'],
  [401, 'permanent'],
  [410, 'permanent'],
  [429, 'rate-limited'],
  [500, 'ambiguous'],
  [503, 'transient'],
])(
  'an answer %i of a receiver is a failure of the kind %s, and its detail shows neither the address nor the secret',
  async (status, kind) => {
    const fetch = createFetch(
      status,
      { error: 'The build is green.' },
      { location: 'https://evil.example/', 'retry-after': '3' },
    )
    const result = await createChannel({ ops }, { fetch }).send(toOutgoing())
    expect(result.kind).toBe(kind)
    expect(JSON.stringify(result)).not.toMatch(/ops\.example|hidden|whsec|evil|The build is green/)
  },
)

it('a whsec_ secret that is not base64 is an error of the configuration', () => {
  const parse = (text: string) => section.safeParse({ endpoints: { ops: { ...ops, secret: text } } }).success
  expect(parse(secret)).toBe(true)
  expect(parse('plain text, äöü')).toBe(true)
  expect(parse('whsec_not base64')).toBe(false)
  expect(parse('whsec_')).toBe(false)
})

it('the error for an unreachable receiver says to check the URL of the endpoint and the network', async () => {
  const unreachable = { url: 'http://127.0.0.1:1/in', secret }
  const { detail } = await createChannel({ unreachable })
    .send(toOutgoing())
    .then((result) => (result.kind === 'sent' ? { detail: '' } : result))
  expect(detail).toMatch(/was not reached: .*Check the URL of the endpoint and the network of this machine\./)
})
