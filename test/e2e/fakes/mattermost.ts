// The API of a Mattermost server as it is documented: POST /api/v4/posts and /channels/direct, GET /users/….
// https://developers.mattermost.com/api-documentation/#/operations/CreatePost
import { z } from 'zod'
import { type Loopback, type Reply, startLoopback } from './loopback.ts'

const Post = z.strictObject({
  channel_id: z.string().length(26),
  message: z.string().min(1).max(16_383),
  pending_post_id: z.string().optional(),
})
const Pair = z.tuple([z.string().length(26), z.string().length(26)])

const botId = 'bot'.padEnd(26, '0')

type MattermostPost = z.infer<typeof Post>
export type FakeMattermost = Loopback & { readonly baseUrl: string; readonly posted: readonly MattermostPost[] }

/** `users`: ids by name. The id of a direct channel contains that of the user. */
export async function startFakeMattermost({
  token,
  channels = [],
  users = {},
}: {
  token: string
  channels?: readonly string[]
  users?: Readonly<Record<string, string>>
}): Promise<FakeMattermost> {
  const posted: MattermostPost[] = []
  const loopback = await startLoopback(({ method, path, headers, body }) => {
    // Mattermost ignores the letter case of the scheme
    if (headers.authorization?.replace(/^bearer/i, 'Bearer') !== `Bearer ${token}`) {
      return refuse(401, 'api.context.session_expired.app_error')
    }
    if (method === 'GET' && path === '/api/v4/users/me') return { status: 200, body: { id: botId, username: 'hooks' } }
    const name = /^\/api\/v4\/users\/username\/([\w.-]+)$/.exec(path)?.[1]
    if (method === 'GET' && name !== undefined) {
      const id = users[name]
      if (id === undefined) return refuse(404, 'app.user.missing_account.const')
      return { status: 200, body: { id, username: name } }
    }
    if (method === 'POST' && path === '/api/v4/channels/direct') {
      const [bot, user = ''] = Pair.safeParse(body).data ?? []
      if (bot !== botId) return refuse(400, 'api.channel.create_direct_channel.invalid_user.app_error')
      if (!Object.values(users).includes(user)) return refuse(404, 'app.user.missing_account.const')
      return { status: 201, body: { id: toDirectId(user), type: 'D' } }
    }
    if (method !== 'POST' || path !== '/api/v4/posts') return refuse(404, 'api.context.404.app_error')
    const post = Post.safeParse(body)
    if (!post.success) return refuse(400, 'model.post.is_valid.msg.app_error')
    const { data } = post
    if (![...channels, ...Object.values(users).map(toDirectId)].includes(data.channel_id)) {
      return refuse(403, 'api.context.permissions.app_error')
    }
    posted.push(data)
    return { status: 201, body: { id: `post${posted.length}`.padEnd(26, '0'), message: data.message } }
  })
  return { ...loopback, baseUrl: loopback.url, posted }
}

export function toDirectId(user: string): string {
  return `d${user.slice(1)}`
}

/** An error in Mattermost's format. */
export function refuse(status: number, id: string): Reply {
  return { status, body: { id, message: 'What went wrong.', status_code: status } }
}
