// A fake of GitHub's REST API for comments (https://docs.github.com/en/rest/issues/comments), commit statuses
// (https://docs.github.com/en/rest/commits/statuses) and the installations of an App (https://docs.github.com/en/rest/apps/apps).
import { githubApp, isAppToken } from './github-deliveries.ts'
import { type Loopback, type Misbehaviour, type Received, type Reply, startLoopback } from './loopback.ts'
import { matchPath } from './outbox.ts'

type Comment = { readonly id: number; readonly issue: string; readonly body: string; readonly updatedAt: number }
type Status = {
  readonly id: number
  /** `<owner>/<repository>@<commit>`. */
  readonly commit: string
  readonly context: string
  readonly state: string
  readonly description: string | null
}

export type FakeGitHubApi = Loopback & {
  readonly comments: readonly Comment[]
  readonly statuses: readonly Status[]
  /** Adds a comment by another user. */
  addOthers(issue: string, body: string): void
  /** Sets how the answers to the next requests that write something are lost: one value for each request. */
  loseAnswers(...endings: readonly ('reset' | Reply)[]): void
  /** Refuses from now on all tokens of installations that were issued so far. */
  revoke(): void
  /** The tokens that the App got. */
  readonly tokens: readonly string[]
}

export const githubApiToken = 'github_pat_0123456789abcdef'
const states = ['error', 'failure', 'pending', 'success']
const notFound: Reply = { status: 404, body: { message: 'Not Found' } }

/** `issues`: `<owner>/<repository>#<number>`. `commits`: `<owner>/<repository>@<commit>`. Others are unknown or not visible. */
export async function startFakeGitHub({
  token = githubApiToken,
  issues = ['acme/app#17'],
  commits = ['acme/app@0123456789abcdef0123456789abcdef01234567'],
  clock = Date.now,
}: {
  token?: string | undefined
  issues?: readonly string[]
  commits?: readonly string[]
  clock?: () => number
} = {}): Promise<FakeGitHubApi> {
  const comments: Comment[] = []
  const statuses: Status[] = []
  const lost: ('reset' | Reply)[] = []
  const tokens: string[] = []
  const revoked = new Set<string>()
  let ids = 1_000_000_000

  function answerComments({ method, path, query, body }: Received): Misbehaviour | undefined {
    const [owner, name, number] = matchPath('/repos/:o/:r/issues/:n/comments', path) ?? []
    if (owner === undefined) return undefined
    const issue = `${owner}/${name}#${number}`
    if (!issues.includes(issue)) return notFound
    if (method === 'GET') {
      const since = Date.parse(query.get('since') ?? '1970-01-01T00:00:00Z')
      const found = comments.filter((comment) => comment.issue === issue && comment.updatedAt >= since)
      return { status: 200, body: toPage(found, query).map(({ id, body: text }) => ({ id, body: text })) }
    }
    // as: only the field that is checked
    const { body: text } = body as { body?: unknown }
    if (method !== 'POST' || typeof text !== 'string' || text.trim() === '' || text.length > 65_536) {
      return { status: 422, body: { message: 'Validation Failed' } }
    }
    return write({ id: addComment(issue, text) })
  }

  function addComment(issue: string, body: string): number {
    ids += 1
    comments.push({ id: ids, issue, body, updatedAt: clock() })
    return ids
  }

  function answerStatuses({ method, path, query, body }: Received): Misbehaviour | undefined {
    const [owner, name, sha] =
      matchPath(method === 'GET' ? '/repos/:o/:r/commits/:s/statuses' : '/repos/:o/:r/statuses/:s', path) ?? []
    if (owner === undefined) return undefined
    const commit = `${owner}/${name}@${sha}`
    if (!commits.includes(commit)) return { status: 422, body: { message: `No commit found for SHA: ${sha}` } }
    if (method === 'GET') {
      const found = statuses.filter((status) => status.commit === commit).toReversed()
      return { status: 200, body: toPage(found, query) }
    }
    // as: each field is checked
    const { state = '', context = 'default', description = null } = body as Partial<Status>
    if (!states.includes(state) || (description?.length ?? 0) > 140) {
      return { status: 422, body: { message: 'Validation Failed' } }
    }
    ids += 1
    statuses.push({ id: ids, commit, context, state, description })
    return write({ id: ids, state, context, description })
  }

  function write(body: object): Misbehaviour {
    return lost.shift() ?? { status: 201, body }
  }

  async function answerApp({ method, path, headers }: Received): Promise<Misbehaviour | undefined> {
    const isLookup = method === 'GET' && matchPath('/repos/:o/:r/installation', path) !== undefined
    const isToken = method === 'POST' && path === '/app/installations/42/access_tokens'
    if (!isLookup && !isToken) return undefined
    if (!(await isAppToken(headers.authorization, clock())))
      return { status: 401, body: { message: 'Bad credentials' } }
    if (isLookup) return { status: 200, body: { id: 42, app_id: Number(githubApp.id) } }
    const fresh = `ghs_${String(tokens.length).padStart(4, '0')}`
    tokens.push(fresh)
    return { status: 201, body: { token: fresh, expires_at: new Date(clock() + 3_600_000).toISOString() } }
  }

  const loopback = await startLoopback(async (request) => {
    const ofApp = await answerApp(request)
    if (ofApp !== undefined) return ofApp
    const given = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? ''
    if (revoked.has(given) || (given !== token && !tokens.includes(given)))
      return { status: 401, body: { message: 'Bad credentials' } }
    if (request.path === '/rate_limit') return { status: 200, body: { resources: {} } }
    return answerComments(request) ?? answerStatuses(request) ?? notFound
  })
  return {
    ...loopback,
    comments,
    statuses,
    addOthers: (issue, body) => void addComment(issue, body),
    loseAnswers: (...endings) => void lost.push(...endings),
    revoke: () => {
      for (const each of tokens) revoked.add(each)
    },
    tokens,
  }
}

function toPage<Item>(items: readonly Item[], query: URLSearchParams): readonly Item[] {
  const size = Math.min(100, Number(query.get('per_page') ?? 30))
  const from = (Number(query.get('page') ?? 1) - 1) * size
  return items.slice(from, from + size)
}
