// A fake of GitLab's REST API for notes (https://docs.gitlab.com/api/notes/) and commit statuses
// (https://docs.gitlab.com/api/commits/#commit-status).
import { type Loopback, type Misbehaviour, type Received, type Reply, startLoopback } from './loopback.ts'

type Note = { readonly id: number; readonly place: string; readonly body: string; readonly createdAt: number }
type Status = { id: number; commit: string; name: string; status: string; description: string | null }

export type FakeGitLabApi = Loopback & {
  readonly notes: readonly Note[]
  /** Each change of a status, as `<state>: <description>`. */
  readonly changes: readonly string[]
  /** Adds a note by another user. `createdAt`: default now. */
  addOthers(place: string, body: string, createdAt?: number): void
  /** Sets how the answers to the next requests that write something are lost: one value for each request. */
  loseAnswers(...endings: readonly ('reset' | Reply)[]): void
}

export const gitlabApiToken = 'glpat-0123456789abcdef'
const notFound: Reply = { status: 404, body: { message: '404 Not Found' } }
const states = ['pending', 'running', 'success', 'failed', 'canceled', 'skipped']

/** `places`: `<project>#<issue>` or `<project>!<merge request>`. `commits`: `<project>@<commit>`. Others are unknown or not visible. */
export async function startFakeGitLab({
  places = ['acme/tools/app#17', 'acme/tools/app!9'],
  commits = ['acme/tools/app@0123456789abcdef0123456789abcdef01234567'],
}: { places?: readonly string[]; commits?: readonly string[] } = {}): Promise<FakeGitLabApi> {
  const notes: Note[] = []
  const statuses: Status[] = []
  const changes: string[] = []
  const lost: ('reset' | Reply)[] = []
  let ids = 1_000

  function addNote(place: string, body: string, createdAt = Date.now()): number {
    ids += 1
    notes.push({ id: ids, place, body, createdAt })
    return ids
  }

  function answerNotes({ method, path, query, body }: Received): Misbehaviour | undefined {
    const [, project, kind, iid] = /^\/projects\/([^/]+)\/(issues|merge_requests)\/(\d+)\/notes$/.exec(path) ?? []
    if (project === undefined) return undefined
    const place = `${decodeURIComponent(project)}${kind === 'issues' ? '#' : '!'}${iid}`
    if (!places.includes(place)) return notFound
    if (method === 'GET') {
      const own = notes.filter((note) => note.place === place)
      const sorted = own.toSorted((one, other) => one.createdAt - other.createdAt || one.id - other.id)
      // the newest notes come first, unless the request says otherwise
      const ordered = query.get('sort') === 'asc' ? sorted : sorted.toReversed()
      const shown = ordered.map(({ id, body: text, createdAt }) => ({
        id,
        body: text,
        created_at: new Date(createdAt).toISOString(),
      }))
      return { status: 200, body: toPage(shown, query) }
    }
    // as: only the field that is checked
    const { body: text } = body as { body?: unknown }
    if (typeof text !== 'string' || text.trim() === '') return { status: 400, body: { error: 'body is missing' } }
    const id = addNote(place, text)
    return lost.shift() ?? { status: 201, body: { id, body: text } }
  }

  function answerStatuses({ method, path, query, body }: Received): Misbehaviour | undefined {
    const listed = /^\/projects\/([^/]+)\/repository\/commits\/(\w+)\/statuses$/.exec(path)
    const [, project, sha] = listed ?? /^\/projects\/([^/]+)\/statuses\/(\w+)$/.exec(path) ?? []
    if (project === undefined || (listed === null) !== (method === 'POST')) return undefined
    const commit = `${decodeURIComponent(project)}@${sha}`
    if (!commits.includes(commit)) return notFound
    if (method === 'GET') {
      const named = statuses.filter((each) => each.commit === commit && each.name === (query.get('name') ?? each.name))
      return { status: 200, body: toPage(named, query) }
    }
    // as: each field is checked
    const { state = '', name = 'default', description = null } = body as Partial<Status> & { state?: string }
    if (!states.includes(state) || (description?.length ?? 0) > 255)
      return { status: 400, body: { error: 'state does not have a valid value' } }
    // a status that has ended is followed by a new status, and one that has not ended is changed
    const open = statuses.find(
      (each) => each.commit === commit && each.name === name && ['pending', 'running'].includes(each.status),
    )
    if (open?.status === state) {
      const event = state === 'pending' ? 'enqueue' : 'run'
      const message = `Cannot transition status via :${event} from :${state} (Reason(s): Status cannot transition via "${event}")`
      return { status: 400, body: { message } }
    }
    ids += 1
    if (open === undefined) statuses.push({ id: ids, commit, name, status: state, description })
    else Object.assign(open, { status: state, description })
    changes.push(`${state}: ${description}`)
    return lost.shift() ?? { status: 201, body: open ?? statuses.at(-1) }
  }

  const loopback = await startLoopback((request) => {
    if (request.headers['private-token'] !== gitlabApiToken)
      return { status: 401, body: { message: '401 Unauthorized' } }
    if (request.path === '/user') return { status: 200, body: { id: 7, username: 'hookloom' } }
    return answerNotes(request) ?? answerStatuses(request) ?? notFound
  })
  return {
    ...loopback,
    notes,
    changes,
    addOthers: (place, body, createdAt) => void addNote(place, body, createdAt),
    loseAnswers: (...endings) => void lost.push(...endings),
  }
}

function toPage<Item>(items: readonly Item[], query: URLSearchParams): readonly Item[] {
  const size = Math.min(100, Number(query.get('per_page') ?? 20))
  const from = (Number(query.get('page') ?? 1) - 1) * size
  return items.slice(from, from + size)
}
