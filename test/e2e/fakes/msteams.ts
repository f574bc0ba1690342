// The Bot Connector of Microsoft Teams and the login that issues its access tokens.
// https://learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-authentication, -connector-api-reference
import { z } from 'zod'
import { type Loopback, type Reply, startLoopback } from './loopback.ts'

const Activity = z.strictObject({
  type: z.literal('message'),
  text: z.string().min(1).max(28_000),
  textFormat: z.enum(['plain', 'markdown']),
})
const Login = z.strictObject({
  grant_type: z.literal('client_credentials'),
  client_id: z.string(),
  client_secret: z.string(),
  scope: z.literal('https://api.botframework.com/.default'),
})

export type FakeTeams = {
  readonly connector: Loopback
  readonly login: Loopback
  readonly posted: readonly { readonly conversation: string; readonly text: string }[]
  /** Refuses all tokens issued so far. */
  revoke(): void
}

export async function startFakeTeams({
  appId,
  appPassword,
  tenantId = 'botframework.com',
  conversations,
  expiresIn = 3599,
}: {
  appId: string
  appPassword: string
  tenantId?: string
  conversations: readonly string[]
  /** The lifetime of a token, in seconds. */
  expiresIn?: number
}): Promise<FakeTeams> {
  const posted: { conversation: string; text: string }[] = []
  const valid = new Set<string>()
  let given = 0
  const login = await startLoopback(({ method, path, headers, text }) => {
    if (method !== 'POST' || path !== `/${tenantId}/oauth2/v2.0/token`) {
      return refuseLogin(400, 'invalid_request', 'AADSTS90002: Tenant not found.')
    }
    if (headers['content-type']?.startsWith('application/x-www-form-urlencoded') !== true) {
      return refuseLogin(400, 'invalid_request', "AADSTS900144: The request body must contain: 'grant_type'.")
    }
    const form = Login.safeParse(Object.fromEntries(new URLSearchParams(text)))
    if (!form.success) return refuseLogin(400, 'invalid_request', form.error.message)
    if (form.data.client_id !== appId) {
      return refuseLogin(400, 'unauthorized_client', 'AADSTS700016: Application was not found in the directory.')
    }
    if (form.data.client_secret !== appPassword) {
      return refuseLogin(401, 'invalid_client', 'AADSTS7000215: Invalid client secret provided.')
    }
    given += 1
    const token = `token-${given}`
    valid.add(token)
    return { status: 200, body: { token_type: 'Bearer', expires_in: expiresIn, access_token: token } }
  })
  const connector = await startLoopback(({ method, path, headers, body }) => {
    const token = headers.authorization?.replace(/^Bearer /, '') ?? ''
    if (!valid.has(token)) return refuse(401, 'Unauthorized', 'Authorization has been denied for this request.')
    const [, encoded] = /^\/v3\/conversations\/([^/]+)\/activities$/.exec(path) ?? []
    if (method !== 'POST' || encoded === undefined) return refuse(404, 'NotFound', 'No such method.')
    const activity = Activity.safeParse(body)
    if (!activity.success) return refuse(400, 'BadSyntax', activity.error.message)
    const conversation = decodeURIComponent(encoded)
    if (!conversations.includes(conversation)) return refuse(404, 'ConversationNotFound', 'Conversation not found.')
    posted.push({ conversation, text: activity.data.text })
    return { status: 201, body: { id: `activity-${posted.length}` } }
  })
  return { connector, login, posted, revoke: () => valid.clear() }
}

/** An error in the connector's format. */
export function refuse(status: number, code: string, message: string): Reply {
  return { status, body: { error: { code, message } } }
}

export function refuseLogin(status: number, error: string, description: string): Reply {
  return { status, body: { error, error_description: description } }
}
