// A fake of GitHub's deliveries of the webhook of a repository (https://docs.github.com/en/rest/repos/webhooks), an organization
// (https://docs.github.com/en/rest/orgs/webhooks) or a GitHub App (https://docs.github.com/en/rest/apps/webhooks). It remembers them for 3 days.
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { jwtVerify } from 'jose'
import { type FakeOutbox, matchPath, startOutbox } from './outbox.ts'
import type { Received, Reply } from './loopback.ts'

type Tried = {
  readonly id: number
  readonly guid: string
  readonly at: number
  readonly status: number
  readonly event: string
  readonly payload: object
  readonly redelivery: boolean
}

export type FakeGitHub = FakeOutbox & {
  /** Adds an attempt, by default a failed one of a new delivery. Returns its guid. */
  addAttempt(attempt?: Partial<Pick<Tried, 'guid' | 'status' | 'payload' | 'event' | 'redelivery'>>): string
  /** Forgets the request of a delivery, but still lists its attempts. */
  forget(guid: string): void
  readonly hook: { active: boolean }
}

export const githubToken = 'github_pat_recover'
const days = 86_400_000
/** The place of the webhook. An App has no id of its webhook, and no call that turns the webhook on. */
export const githubPlaces = {
  repository: '/repos/acme/app/hooks/77',
  organization: '/orgs/acme/hooks/77',
  app: '/app/hook',
} as const
/** The key of the App, and its id. */
export const githubApp = { id: '4711', ...generateKeyPairSync('rsa', { modulusLength: 2_048 }) }

/** https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app */
export async function isAppToken(authorization: string | undefined, now: number): Promise<boolean> {
  const token = /^Bearer (.+)$/.exec(authorization ?? '')?.[1] ?? ''
  const checks = {
    issuer: githubApp.id,
    algorithms: ['RS256'],
    currentDate: new Date(now),
    requiredClaims: ['iat', 'exp'],
  }
  const verified = await jwtVerify(token, githubApp.publicKey, checks).catch(() => undefined)
  const { iat = Number.POSITIVE_INFINITY, exp = Number.POSITIVE_INFINITY } = verified?.payload ?? {}
  const seconds = now / 1_000
  return iat <= seconds && exp <= seconds + 600
}

export async function startGitHub({
  clock,
  pageSize = 100,
  place = 'repository',
}: {
  clock: () => number
  pageSize?: number
  place?: keyof typeof githubPlaces
}): Promise<FakeGitHub> {
  const hookPath = githubPlaces[place]
  const tried: Tried[] = []
  const forgotten = new Set<string>()
  const hook = { active: true }
  const ids = 9_007_199_254_740_993n
  const listKept = () => tried.filter(({ at }) => clock() - at < 3 * days)

  const fake = await startOutbox({
    clock,
    isAuthorised: ({ headers }) =>
      place === 'app' ? isAppToken(headers.authorization, clock()) : headers.authorization === `Bearer ${githubToken}`,
    buildLimitAnswer: ({ resetAt }) => ({
      status: 403,
      headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(resetAt) },
      body: { message: 'API rate limit exceeded' },
    }),
    answer: (request) => answerHook(request) ?? answerList(request) ?? answerOne(request),
  })

  function answerHook({ method, path, body }: Received): Reply | undefined {
    if (path !== hookPath || place === 'app') return undefined
    if (method === 'PATCH') hook.active = (body as { active?: boolean }).active ?? hook.active
    return { status: 200, body: { id: 77, active: hook.active, events: ['*'] } }
  }

  function answerList({ method, path, query }: Received): Reply | undefined {
    if (method !== 'GET' || path !== `${hookPath}/deliveries`) return undefined
    const size = Math.min(100, pageSize, Number(query.get('per_page') ?? 30))
    const all = listKept().toReversed()
    const first = query.get('cursor')
    const from = first === null ? 0 : all.findIndex(({ guid, at }) => `v1_${at}_${guid}` === first)
    const page = all.slice(from, from + size)
    const next = all[from + size]
    const link =
      next === undefined
        ? {}
        : { link: `<https://elsewhere.example${path}?per_page=${size}&cursor=v1_${next.at}_${next.guid}>; rel="next"` }
    return {
      status: 200,
      headers: { ...link, 'content-type': 'application/json' },
      body: `[${page.map(toListEntry).join(',')}]`,
    }
  }

  function answerOne({ path }: Received): Reply | undefined {
    const [id] = matchPath(`${hookPath}/deliveries/:id`, path) ?? []
    if (id === undefined) return undefined
    const found = listKept().find((each) => String(toLongId(each)) === id)
    if (found === undefined || forgotten.has(found.guid)) return { status: 404, body: { message: 'Not Found' } }
    const { guid, event, payload } = found
    const headers = {
      'Content-Type': 'application/json',
      'X-GitHub-Delivery': guid,
      'X-GitHub-Event': event,
      'X-Hub-Signature-256': '********',
    }
    const request = JSON.stringify({ headers, payload })
    return {
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: `{"id": ${toLongId(found)}, "guid": "${guid}", "url": "https://hooks.example/hooks/github?team=core", "request": ${request}, "response": {}}`,
    }
  }

  /** this id has more digits than a JavaScript number can have */
  function toLongId({ id }: Tried): bigint {
    return ids + BigInt(2 * id)
  }

  function toListEntry(each: Tried): string {
    const { guid, at, status, event, redelivery } = each
    const fields = {
      guid,
      delivered_at: new Date(at).toISOString(),
      redelivery,
      duration: 0.1,
      status: status === 200 ? 'OK' : 'failed',
      status_code: status,
      event,
      action: null,
    }
    return `{"id": ${toLongId(each)},${JSON.stringify(fields).slice(1)}`
  }

  return Object.assign(fake, {
    hook,
    addAttempt(attempt: Partial<Tried> = {}): string {
      const { guid = randomUUID(), status = 502, payload = {}, event = 'push', redelivery = false } = attempt
      tried.push({ id: tried.length, guid, at: clock(), status, event, payload, redelivery })
      return guid
    },
    forget: (guid: string) => void forgotten.add(guid),
  })
}
