// A fake of Linear's GraphQL API for comments (https://linear.app/developers/graphql): errors have the status 200 or 400, as documented.
import { type Loopback, type Received, type Reply, startLoopback } from './loopback.ts'

type Comment = { readonly id: string; readonly issueId: string; readonly body: string }

export type FakeLinearApi = Loopback & {
  readonly comments: readonly Comment[]
  /** Sets how the answers to the next comments are lost: one value for each comment. */
  loseAnswers(...endings: readonly ('reset' | Reply)[]): void
}

export const linearApiKey = 'lin_api_0123456789abcdef'
const uuidV4 = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/

export function toLinearError(status: number, code: string, headers: Readonly<Record<string, string>> = {}): Reply {
  return { status, headers, body: { errors: [{ message: 'The words of Linear', extensions: { code } }], data: null } }
}

/** `issues`: ids or identifiers. All others are unknown or not visible. */
export async function startFakeLinear({
  issues = ['ENG-17', '539068e2-ae88-4d09-bd75-22eb4a59612f'],
}: { issues?: readonly string[] } = {}): Promise<FakeLinearApi> {
  const comments: Comment[] = []
  const lost: ('reset' | Reply)[] = []

  function answer({ path, headers, body }: Received) {
    if (path !== '/graphql') return { status: 404, body: 'Not Found' }
    if (headers.authorization !== linearApiKey) return toLinearError(401, 'AUTHENTICATION_ERROR')
    // as: each field is checked
    const { query = '', variables = {} } = body as { query?: string; variables?: { id?: string; input?: Comment } }
    if (query.includes('viewer')) return { status: 200, body: { data: { viewer: { id: 'u1' } } } }
    if (query.startsWith('query')) {
      const found = comments.find(({ id }) => id === variables.id)
      return found === undefined
        ? toLinearError(200, 'INPUT_ERROR')
        : { status: 200, body: { data: { comment: found } } }
    }
    const { input } = variables
    const isValid =
      query.includes('commentCreate(input: $input)') &&
      input !== undefined &&
      uuidV4.test(input.id) &&
      issues.includes(input.issueId) &&
      input.body.trim() !== ''
    if (!isValid) return toLinearError(400, 'INPUT_ERROR')
    if (comments.some(({ id }) => id === input.id)) return toLinearError(200, 'INPUT_ERROR')
    comments.push(input)
    return (
      lost.shift() ?? { status: 200, body: { data: { commentCreate: { success: true, comment: { id: input.id } } } } }
    )
  }

  const loopback = await startLoopback(answer)
  return {
    ...loopback,
    url: `${loopback.url}/graphql`,
    comments,
    loseAnswers: (...endings) => void lost.push(...endings),
  }
}
