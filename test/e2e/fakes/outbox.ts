// The parts that all fakes of senders with a delivery API share: a clock, a credential, a limit of requests, and mistakes in `faults`.
import { type Loopback, type Misbehaviour, type Received, type Reply, startLoopback } from './loopback.ts'

export type FakeOutbox = Pick<Loopback, 'url' | 'received' | 'planAnswers' | 'close'> & {
  /** Requests that the documented API does not have. Must be empty at the end of a test. */
  readonly faults: string[]
  /** Runs before a request whose path and query contain this text is answered. */
  onRequest(path: string, hook: () => void | Promise<void>): void
  /** Lets the API accept this many more requests, and then limits it for this many seconds. */
  limitRequests(requests: number, seconds: number): void
}

export type OutboxOptions = {
  /** The clock of the sender, in milliseconds. */
  readonly clock: () => number
  readonly isAuthorised: (request: Received) => boolean | Promise<boolean>
  readonly answer: (request: Received) => Reply | undefined
  /** Builds the answer to a request over the limit. `resetAt`: the end of the limit, in seconds since the epoch. */
  readonly buildLimitAnswer: (limit: { resetAt: number; seconds: number }) => Reply
}

export async function startOutbox({
  clock,
  isAuthorised,
  answer,
  buildLimitAnswer,
}: OutboxOptions): Promise<FakeOutbox> {
  const faults: string[] = []
  const hooks: { path: string; hook: () => void | Promise<void> }[] = []
  let limited: { left: number; seconds: number; until: number } | undefined

  async function respond(request: Received): Promise<Misbehaviour> {
    for (const { path, hook } of hooks) if (`${request.path}?${request.query}`.includes(path)) await hook()
    if (!(await isAuthorised(request))) return { status: 401, body: { message: 'Bad credentials' } }
    const refused = count()
    if (refused !== undefined) return refused
    const reply = answer(request)
    if (reply === undefined) faults.push(`no such request: ${request.method} ${request.path}?${request.query}`)
    return reply ?? { status: 404, body: { message: 'Not Found' } }
  }

  function count(): Reply | undefined {
    if (limited === undefined) return undefined
    const now = clock()
    if (limited.until > 0 && now >= limited.until) limited = undefined
    if (limited === undefined) return undefined
    limited.left -= 1
    if (limited.left >= 0) return undefined
    if (limited.until > 0) faults.push('a request before the end of the limit')
    else limited.until = now + limited.seconds * 1_000
    const { until, seconds } = limited
    return buildLimitAnswer({ resetAt: Math.ceil(until / 1_000), seconds })
  }

  const loopback = await startLoopback(async (request) => {
    const reply = await respond(request)
    if (typeof reply !== 'object') return reply
    return { ...reply, headers: { date: new Date(clock()).toUTCString(), ...reply.headers } }
  })
  return {
    ...loopback,
    faults,
    onRequest: (path, hook) => void hooks.push({ path, hook }),
    limitRequests: (left, seconds) => void (limited = { left, seconds, until: 0 }),
  }
}

/** The fields of a path such as `/repos/:owner/hooks`; undefined if it does not match. */
export function matchPath(pattern: string, path: string): readonly string[] | undefined {
  const [parts, given] = [pattern.split('/'), path.split('/')]
  if (parts.length !== given.length) return undefined
  const values: string[] = []
  for (const [index, part] of parts.entries()) {
    if (part.startsWith(':')) values.push(decodeURIComponent(given[index] ?? ''))
    else if (part !== given[index]) return undefined
  }
  return values
}
