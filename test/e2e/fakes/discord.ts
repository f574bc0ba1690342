// Discord's HTTP API as it is documented: POST /channels/<id>/messages and /users/@me/channels, GET /users/@me.
// https://docs.discord.com/developers/resources/message#create-message, /topics/rate-limits
import { z } from 'zod'
import { type Loopback, type Reply, startLoopback } from './loopback.ts'

const Message = z.strictObject({
  content: z.string().min(1).max(2_000),
  nonce: z.string().max(25),
  enforce_nonce: z.literal(true),
  allowed_mentions: z.strictObject({ parse: z.array(z.enum(['roles', 'users', 'everyone'])) }),
  flags: z.int(),
})
const Direct = z.strictObject({ recipient_id: z.string().regex(/^\d{17,20}$/) })

type DiscordMessage = z.infer<typeof Message> & { readonly channel: string }
export type FakeDiscord = Loopback & { readonly baseUrl: string; readonly posted: readonly DiscordMessage[] }

/** The direct channel of a user. */
export function toDirectId(user: string): string {
  return `9${user.slice(1)}`
}

/** `channels`: those to which the bot may write. `silent`: users who accept no direct messages. */
export async function startFakeDiscord({
  botToken,
  channels = [],
  users = [],
  silent = [],
}: {
  botToken: string
  channels?: readonly string[]
  users?: readonly string[]
  silent?: readonly string[]
}): Promise<FakeDiscord> {
  const posted: DiscordMessage[] = []
  const loopback = await startLoopback(({ method, path, headers, body }) => {
    if (!/^DiscordBot \(https?:\/\/\S+, \S+\)/.test(headers['user-agent'] ?? '')) {
      return { status: 403, body: 'error code: 1010' }
    }
    if (headers.authorization !== `Bot ${botToken}`) return refuse(401, 0, '401: Unauthorized')
    if (method === 'GET' && path === '/api/v10/users/@me') {
      return { status: 200, body: { id: '80351110224678912', username: 'hooks', bot: true } }
    }
    if (method === 'POST' && path === '/api/v10/users/@me/channels') {
      const direct = Direct.safeParse(body)
      if (!direct.success) return refuse(400, 50035, 'Invalid Form Body')
      const user = direct.data.recipient_id
      if (!users.includes(user)) return refuse(400, 10013, 'Unknown User')
      return { status: 200, body: { id: toDirectId(user), type: 1 } }
    }
    const channel = /^\/api\/v10\/channels\/(\d+)\/messages$/.exec(path)?.[1]
    if (method !== 'POST' || channel === undefined) return refuse(404, 0, '404: Not Found')
    if (silent.some((user) => toDirectId(user) === channel)) return refuse(403, 50007, 'Cannot send to this user')
    if (![...channels, ...users.map(toDirectId)].includes(channel)) return refuse(403, 50001, 'Missing Access')
    const message = Message.safeParse(body)
    if (!message.success) return refuse(400, 50035, 'Invalid Form Body')
    const known = posted.findIndex(({ nonce }) => nonce === message.data.nonce)
    if (known === -1) posted.push({ ...message.data, channel })
    const number = known === -1 ? posted.length : known + 1
    return { status: 200, body: { id: String(1_000_000 + number), content: message.data.content } }
  })
  return { ...loopback, baseUrl: `${loopback.url}/api/v10`, posted }
}

/** An error in Discord's format. */
export function refuse(status: number, code: number, message: string): Reply {
  return { status, body: { message, code } }
}
