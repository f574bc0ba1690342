// GitLab 17.4 and later: the events of the webhook of a project or a group, of the last 7 days, with their requests.
// https://docs.gitlab.com/api/project_webhooks/ and https://docs.gitlab.com/api/group_webhooks/
import { z } from 'zod'
import { defineOutbox, type Outbox, type OutboxHost, type OutboxPage, type SentAttempt } from '../../define.ts'
import { apiUrl, isSuccess, numberOrPath, parseApiAnswer, senderId, token, toSentHeaders } from './shared/kit.ts'
import { readRawItems, readRawValue } from './shared/raw-value.ts'

const EventList = z.array(
  z.object({
    id: z.int(),
    url: z.string().optional(),
    request_headers: z.record(z.string(), z.unknown()).nullable(),
    // the status is the text "internal error" if the connection failed
    response_status: z.union([z.string(), z.int()]).nullable().transform(Number),
  }),
)
const Hook = z.object({
  alert_status: z.string().optional(),
  disabled_until: z.string().nullable().optional(),
})

/** The most that GitLab accepts here, unlike in its other lists: lib/api/hooks/events.rb */
const perPage = 20

const options = z
  .strictObject({
    project: numberOrPath.describe('Project of the webhook: its id, or its path such as "acme/app".'),
    group: numberOrPath.describe('Group of the webhook, in place of `project`.'),
    hookId: senderId.describe('Id of the webhook, which the URL of its page shows.'),
    token: token.describe('Access token with the scope api of a maintainer of the project, or an owner of the group.'),
    baseUrl: apiUrl
      .default('https://gitlab.com/api/v4')
      .describe('URL of the API. Self-managed: https://<host>/api/v4.'),
  })
  .superRefine(({ project, group }, context) => {
    if ((project === undefined) === (group === undefined))
      context.addIssue({ code: 'custom', path: ['project'], message: 'must be set, or group: exactly one of them' })
  })
type Settings = z.infer<typeof options>

export const gitlabOutbox = defineOutbox({
  name: 'gitlab',
  about: 'Events of the last 7 days.',
  remembers: true,
  options,
  create: openGitLab,
})

function openGitLab(settings: Settings, { openApi }: OutboxHost): Outbox {
  const { baseUrl, project, group, hookId, token } = settings
  const owner =
    group === undefined ? `/projects/${encodeURIComponent(project ?? '')}` : `/groups/${encodeURIComponent(group)}`
  const hookPath = `${owner}/hooks/${hookId}`
  const call = openApi({ baseUrl, authorize: () => ({ 'private-token': token }) })

  return {
    name: `gitlab ${baseUrl}${hookPath}`,
    remembers: true,
    hasTimes: false,
    overlap: 1_000,
    async *pages(): AsyncGenerator<OutboxPage> {
      // an event that arrives between two pages moves older ones to the next page, where they are seen twice, not missed
      for (let page = 1; ; page += 1) {
        const { text } = await call({ path: `${hookPath}/events?per_page=${perPage}&page=${page}` })
        const listed = parseApiAnswer(EventList, { text }, 'GitLab’s list of events')
        const texts = readRawItems(text)
        yield { attempts: listed.map((event, index) => toAttempt(event, texts[index] ?? '')) }
        if (listed.length < perPage) return
      }
    },
    // the list has every request that GitLab kept
    fetch: async () => undefined,
    async state() {
      const answer = await call({ path: hookPath })
      const { alert_status: status, disabled_until: until } = parseApiAnswer(Hook, answer, 'GitLab’s webhook')
      // GitLab keeps `disabled_until` after this time, until a request succeeds (app/models/concerns/web_hooks/auto_disabling.rb)
      const isUntil = Date.parse(until ?? '') > answer.now
      if (status === 'executable' || (status === undefined && !isUntil)) return { isOn: true }
      const how = isUntil ? `until ${until?.slice(0, 40)}` : `(${status?.slice(0, 40)})`
      return { isOn: false, why: `GitLab has disabled the webhook ${how}, because requests failed.` }
    },
    async turnOn() {
      // a test request that succeeds enables the webhook: https://docs.gitlab.com/user/project/integrations/webhooks/#re-enable-disabled-webhooks
      await call({ method: 'POST', path: `${hookPath}/test/push_events` })
    },
  }
}

/** What GitLab keeps in place of a request that is too large (`OVERSIZE_REQUEST_DATA` of app/models/hooks/web_hook_log.rb). */
const oversize = /^\{\s*"oversize"\s*:\s*true\s*\}$/

function toAttempt(event: z.infer<typeof EventList>[number], text: string): SentAttempt {
  const headers = toSentHeaders(event.request_headers ?? {})
  const body = readRawValue(text, ['request_data']) ?? ''
  const request = { headers, body: new TextEncoder().encode(body), url: event.url }
  return {
    // the id is the same in a repeated request; older versions of GitLab send none
    id: headers['idempotency-key'] ?? headers['webhook-id'] ?? `event-${event.id}`,
    place: event.id,
    isDelivered: isSuccess(event.response_status),
    ref: String(event.id),
    ...(oversize.test(body) ? { headers } : { request }),
  }
}
