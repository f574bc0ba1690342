// GitHub: the deliveries of the webhook of a repository, an organization or a GitHub App, of the last 3 days.
// https://docs.github.com/en/rest/repos/webhooks (deliveries) and https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries
import { z } from 'zod'
import {
  type ApiAnswer,
  defineOutbox,
  type Outbox,
  type OutboxHost,
  type OutboxPage,
  type SentRequest,
} from '../../define.ts'
import {
  ApiDenial,
  apiUrl,
  isSuccess,
  nonBlank,
  parseApiAnswer,
  pathPart,
  senderId,
  signGitHubAppToken,
  tenMinutes,
  token,
  toSentHeaders,
} from './shared/kit.ts'
import { readRawValue } from './shared/raw-value.ts'

const DeliveryList = z.array(
  z.object({
    // a text if the id has more digits than a JavaScript number can have
    id: z.union([z.string().regex(/^\d+$/), z.int()]).transform(String),
    guid: z.string().min(1),
    delivered_at: z.iso.datetime({ offset: true }),
    status_code: z.int(),
    event: z.string(),
  }),
)
const Delivery = z.object({
  url: z.string().optional(),
  request: z.object({ headers: z.record(z.string(), z.unknown()).nullable(), payload: z.unknown() }),
})
const HookConfig = z.object({ active: z.boolean() })

const options = z
  .strictObject({
    repository: z
      .string()
      .regex(/^[\w.-]+\/[\w.-]+$/, 'must be <owner>/<repository>')
      .optional()
      .describe('Repository of the webhook, as <owner>/<repository>.'),
    organization: pathPart.optional().describe('Organization of the webhook, in place of `repository`.'),
    appId: senderId
      .optional()
      .describe('Id of the GitHub App whose webhook it is, in place of `repository`, `hookId` and `token`.'),
    hookId: senderId
      .optional()
      .describe('Id of the webhook: the last part of the URL of its page, and the header X-GitHub-Hook-ID.'),
    token: token
      .optional()
      .describe('Fine-grained token that may read the webhooks of the repository or organization.'),
    privateKey: nonBlank
      .optional()
      .describe('Private key of the GitHub App, in PEM format, such as "${file:/run/secrets/github-app.pem}".'),
    baseUrl: apiUrl
      .default('https://api.github.com')
      .describe('URL of the API. GitHub Enterprise Server: https://<host>/api/v3.'),
  })
  .superRefine(({ repository, organization, appId, hookId, token: own, privateKey }, context) => {
    const report = (key: string, message: string) => context.addIssue({ code: 'custom', path: [key], message })
    const owners = [repository, organization, appId].filter((owner) => owner !== undefined)
    if (owners.length !== 1) report('repository', 'must be set, or organization, or appId: exactly one of them')
    if (appId !== undefined && privateKey === undefined)
      report('privateKey', 'must be the private key of the GitHub App')
    if (appId === undefined && hookId === undefined) report('hookId', 'must be the id of the webhook')
    if (appId === undefined && own === undefined) report('token', 'must be a token that may read webhooks')
  })
type Settings = z.infer<typeof options>

export const githubOutbox = defineOutbox({
  name: 'github',
  about: 'Deliveries of the last 3 days.',
  remembers: true,
  options,
  create: openGitHub,
})

function openGitHub(settings: Settings, { openApi }: OutboxHost): Outbox {
  const { baseUrl } = settings
  const hookPath = toHookPath(settings)
  const call = openApi({ baseUrl, authorize: (now) => authorize(settings, now) })

  return {
    name: `github ${baseUrl}${hookPath}${settings.appId === undefined ? '' : ` ${settings.appId}`}`,
    remembers: true,
    hasTimes: true,
    overlap: tenMinutes,
    async *pages(): AsyncGenerator<OutboxPage> {
      for (let cursor: string | undefined = ''; cursor !== undefined;) {
        const more: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
        const answer: ApiAnswer = await call({ path: `${hookPath}/deliveries?per_page=100${more}` })
        const listed = parseApiAnswer(DeliveryList, { text: quoteLongIds(answer.text) }, 'GitHub’s list of deliveries')
        const attempts = listed.map(({ id, guid, delivered_at: at, status_code: status, event }) => ({
          id: guid,
          headers: { 'x-github-delivery': guid, 'x-github-event': event },
          place: Date.parse(at),
          isDelivered: isSuccess(status),
          ref: id,
        }))
        yield { attempts, now: answer.now }
        cursor = readNextCursor(answer.headers)
      }
    },
    async fetch({ ref }): Promise<SentRequest | undefined> {
      const answer = await call({ path: `${hookPath}/deliveries/${encodeURIComponent(ref)}`, allow: [404, 410] })
      if (!isSuccess(answer.status)) return undefined
      const { url, request } = parseApiAnswer(Delivery, answer, 'GitHub’s delivery')
      const headers = toSentHeaders(request.headers ?? {})
      const payload = readRawValue(answer.text, ['request', 'payload']) ?? JSON.stringify(request.payload)
      return { headers, body: toSentBody(headers, payload), url }
    },
    async state() {
      // a webhook of an App cannot be switched off: https://docs.github.com/en/rest/apps/webhooks
      if (settings.appId !== undefined) return { isOn: true }
      const { active } = parseApiAnswer(HookConfig, await call({ path: hookPath }), 'GitHub’s webhook')
      return active ? { isOn: true } : { isOn: false, why: 'The webhook is not active at GitHub.' }
    },
    async turnOn() {
      await call({ method: 'PATCH', path: hookPath, body: { active: true } })
    },
  }
}

function toHookPath({ repository, organization, hookId = '' }: Settings): string {
  if (repository !== undefined) return `/repos/${repository}/hooks/${hookId}`
  return organization === undefined ? '/app/hook' : `/orgs/${organization}/hooks/${hookId}`
}

async function authorize(
  { appId, privateKey, token }: Settings,
  now: number,
): Promise<Readonly<Record<string, string>>> {
  const bearer =
    appId === undefined || privateKey === undefined ? token : await signGitHubAppToken({ appId, privateKey }, now)
  if (bearer === undefined) {
    throw new ApiDenial('recover.privateKey is not a private key in PEM format. Download it again.')
  }
  return {
    authorization: `Bearer ${bearer}`,
    accept: 'application/vnd.github+json',
    'x-github-api-version': '2022-11-28',
  }
}

/** Only the cursor is taken from the link, so that an answer cannot choose the host of the next request. */
function readNextCursor(headers: Headers): string | undefined {
  const next = /<([^>]*)>;\s*rel="next"/.exec(headers.get('link') ?? '')?.[1]
  if (next === undefined || !URL.canParse(next)) return undefined
  return new URL(next).searchParams.get('cursor') ?? undefined
}

/** Quotes ids of 16 digits and more, which could lose their last digits. The list has no payloads, so only ids have this form. */
function quoteLongIds(text: string): string {
  return text.replaceAll(/("id"\s*:\s*)(\d{16,})/g, '$1"$2"')
}

/** Builds the body that was sent. A webhook may send its payload as a form: https://docs.github.com/en/webhooks/using-webhooks/creating-webhooks */
function toSentBody(headers: Readonly<Record<string, string>>, payload: string): Uint8Array<ArrayBuffer> {
  const isForm = headers['content-type']?.startsWith('application/x-www-form-urlencoded') === true
  return new TextEncoder().encode(isForm ? new URLSearchParams({ payload }).toString() : payload)
}
