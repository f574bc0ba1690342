// A fake of GitLab's events of the webhook of a project (https://docs.gitlab.com/api/project_webhooks/) or a group
// (https://docs.gitlab.com/api/group_webhooks/).
import { randomUUID } from 'node:crypto'
import type { Received, Reply } from './loopback.ts'
import { type FakeOutbox, startOutbox } from './outbox.ts'

type Tried = {
  readonly id: number
  readonly key: string
  readonly at: number
  readonly status: string
  readonly payload: object
}

export type FakeGitLab = FakeOutbox & {
  /** Adds an event, by default one whose connection failed. Returns its Idempotency-Key. */
  addAttempt(event?: Partial<Pick<Tried, 'key' | 'status' | 'payload'>>): string
  /** `disabled_until` and `alert_status` of the webhook. */
  readonly hook: { disabledUntil: string | null; alertStatus: string }
}

export const gitlabToken = 'glpat-recover'
const places = { project: '/api/v4/projects/acme%2Fapp/hooks/5', group: '/api/v4/groups/acme%2Ftools/hooks/5' } as const
const days = 86_400_000

export async function startGitLab({
  clock,
  place = 'project',
}: {
  clock: () => number
  place?: keyof typeof places
}): Promise<FakeGitLab> {
  const path = places[place]
  const tried: Tried[] = []
  const hook = { disabledUntil: null as string | null, alertStatus: 'executable' }
  const fake = await startOutbox({
    clock,
    isAuthorised: ({ headers }) => headers['private-token'] === gitlabToken,
    buildLimitAnswer: ({ resetAt, seconds }) => ({
      status: 429,
      headers: { 'retry-after': String(seconds), 'ratelimit-remaining': '0', 'ratelimit-reset': String(resetAt) },
      body: 'Retry later\n',
    }),
    answer: (request) => answerHook(request) ?? answerEvents(request),
  })

  function answerHook(request: Received): Reply | undefined {
    if (request.method === 'POST' && request.path === `${path}/test/push_events`) {
      Object.assign(hook, { disabledUntil: null, alertStatus: 'executable' })
      return { status: 201, body: { message: '201 Created' } }
    }
    if (request.path !== path) return undefined
    return {
      status: 200,
      body: {
        id: 5,
        url: 'https://hooks.example/hooks/gitlab',
        alert_status: hook.alertStatus,
        disabled_until: hook.disabledUntil,
      },
    }
  }

  function answerEvents({ path: asked, query }: Received): Reply | undefined {
    if (asked !== `${path}/events`) return undefined
    const size = Number(query.get('per_page') ?? 20)
    // unlike the other lists of GitLab (lib/api/hooks/events.rb)
    if (size < 1 || size > 20) return { status: 400, body: { error: 'per_page does not have a valid value' } }
    const first = (Number(query.get('page') ?? 1) - 1) * size
    const kept = tried.filter(({ at }) => clock() - at < 7 * days).toReversed()
    return { status: 200, body: kept.slice(first, first + size).map(toEvent) }
  }

  return Object.assign(fake, {
    hook,
    addAttempt({ key = randomUUID(), status = 'internal error', payload = {} }: Partial<Tried> = {}) {
      // an id is unique in the whole instance
      tried.push({ id: 40_000 + 7 * tried.length, key, at: clock(), status, payload })
      return key
    },
  })
}

function toEvent({ id, key, status, payload }: Tried): object {
  return {
    id,
    url: 'https://hooks.example/hooks/gitlab',
    trigger: 'push_hooks',
    request_headers: {
      'Content-Type': 'application/json',
      'User-Agent': 'GitLab/18.0.0',
      'Idempotency-Key': key,
      'X-Gitlab-Event': 'Push Hook',
      'X-Gitlab-Event-UUID': 'the-same-for-all',
      'X-Gitlab-Token': '[REDACTED]',
    },
    request_data: payload,
    response_headers: {},
    response_body: '',
    execution_duration: 0.2,
    response_status: status,
  }
}
