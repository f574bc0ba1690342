// Slack's Web API as documented: POST /api/<method>, JSON or a form, status 200 even for refusals.
// https://docs.slack.dev/apis/web-api/, /reference/methods/chat.postMessage
import { z } from 'zod'
import { type Loopback, type Received, type Reply, startLoopback } from './loopback.ts'

const Message = z.strictObject({
  channel: z.string().min(1),
  text: z.string().min(1).max(40_000),
  thread_ts: z
    .string()
    .regex(/^\d+\.\d{6}$/)
    .optional(),
  unfurl_links: z.boolean(),
  unfurl_media: z.boolean(),
  metadata: z.strictObject({ event_type: z.string(), event_payload: z.record(z.string(), z.string()) }),
})
const Open = z.strictObject({ users: z.string() })

type SlackMessage = z.infer<typeof Message>
export type FakeSlack = Loopback & { readonly baseUrl: string; readonly posted: readonly SlackMessage[] }

/** `channels`: those to which the app was invited. `others`: channels without the app. */
export async function startFakeSlack({
  botToken,
  channels = [],
  others = [],
  users = {},
}: {
  botToken: string
  channels?: readonly string[]
  others?: readonly string[]
  /** Direct channels by user. */
  users?: Readonly<Record<string, string>>
}): Promise<FakeSlack> {
  const posted: SlackMessage[] = []
  const loopback = await startLoopback((received) => {
    const { method, path, headers } = received
    if (method !== 'POST') return refuse('invalid_post_type')
    if (headers.authorization !== `Bearer ${botToken}`) return refuse('invalid_auth')
    const given = toArguments(received)
    if (path === '/api/auth.test') return { status: 200, body: { ok: true, user: 'hooks', team: 'Example' } }
    if (path === '/api/conversations.open') {
      const id = users[Open.safeParse(given).data?.users ?? '']
      return id === undefined ? refuse('user_not_found') : { status: 200, body: { ok: true, channel: { id } } }
    }
    if (path !== '/api/chat.postMessage') return refuse('unknown_method')
    const message = Message.safeParse(given)
    if (!message.success) return refuse('invalid_arguments')
    const { data } = message
    if (others.includes(data.channel)) return refuse('not_in_channel')
    if (![...channels, ...Object.values(users)].includes(data.channel)) return refuse('channel_not_found')
    posted.push(data)
    const ts = `1700000000.${String(posted.length).padStart(6, '0')}`
    return { status: 200, body: { ok: true, channel: data.channel, ts, message: { text: data.text, ts } } }
  })
  return { ...loopback, baseUrl: `${loopback.url}/api`, posted }
}

/** The arguments of a method: JSON, or form fields in which values other than texts are JSON. */
export function toArguments({ headers, text, body }: Received): unknown {
  if (headers['content-type']?.startsWith('application/json') === true) return body
  return Object.fromEntries([...new URLSearchParams(text)].map(([name, value]) => [name, toField(value)]))
}

function toField(value: string): unknown {
  return /^(true|false|\{.*\})$/s.test(value) ? JSON.parse(value) : value
}

/** An error in Slack's format. */
export function refuse(error: string): Reply {
  return { status: 200, body: { ok: false, error } }
}
