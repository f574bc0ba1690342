// The output of `hookloom show` about a run.
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { show } from '../../../src/cli/show.ts'
import { createContext } from '../../../src/cli/terminal/context.ts'
import { createSqliteStore } from '../../../src/index.ts'
import type { JobState } from '../../../src/model/api/answers.ts'
import type { Post, Step } from '../../../src/model/job.ts'
import { flowJob } from '../../contract/flow.ts'
import { newDelivery, newJob } from '../../contract/stage.ts'
import { makeConfigDir } from '../../e2e/gateway.ts'

const post = (part: number, over: Partial<Post>): Post => ({
  part,
  channel: 'slack',
  to: 'C1',
  nonce: `nonce-${part}`,
  text: 'A part.',
  at: 1_700_000_000_000,
  state: 'waiting',
  ...over,
})

function createShowContext(dir: string) {
  const printed: string[] = []
  const objects: object[] = []
  const io = { env: {}, script: 'hookloom', stdin: Readable.from([]), writeOut: () => {}, writeError: () => {} }
  const context = {
    ...createContext(io, { configDir: dir }),
    print: (text: string) => void printed.push(text),
    printJson: (value: object) => void objects.push(value),
  }
  return { context, printed, objects }
}

/** The output for a job with the given messages, for people and as JSON. */
async function showPosts(
  posts: readonly Post[],
  state: Extract<JobState, 'dead' | 'done' | 'queued' | 'running'>,
  step?: Step,
) {
  const dir = makeConfigDir()
  const store = createSqliteStore({ file: join(dir, 'state/hookloom.db'), clock: Date.now })
  const job = newJob()
  await store.append(newDelivery({ at: Date.now(), jobs: [job] }))
  const [claimed] = await store.claim({ limit: 1, leaseMs: 60_000 })
  if (claimed === undefined) throw new Error('nothing to claim')
  const ends = {
    dead: { outcome: { kind: 'dead', error: 'refused', counted: true } },
    done: { outcome: { kind: 'done' } },
    queued: { outcome: { kind: 'retry', afterMs: 60_000, error: 'down', counted: true } },
    running: {},
  } as const
  if (step !== undefined) await store.report(claimed, { steps: [step] })
  await store.report(claimed, { posts, ...ends[state] })
  await store.close()
  const { context, printed, objects } = createShowContext(dir)
  await show({ ...context, json: false }, { id: job.id })
  await show({ ...context, json: true }, { id: job.id })
  const lines = printed
    .join('\n')
    .split('\n')
    .filter((line) => / of \d/.test(line))
  return { lines, objects, text: printed.join('\n') }
}

test('a message of a dead run is shown as sent, unsent or unknown', async () => {
  const posts = [
    post(0, { state: 'sent', id: 'm1' }),
    post(1, { state: 'unknown' }),
    post(2, { state: 'sending' }),
    post(3, { state: 'waiting', mayBeTwice: true }),
    post(4, {}),
  ]
  const { lines, objects } = await showPosts(posts, 'dead')
  expect(lines.map((line) => line.split(/ {2,}/)[1])).toEqual(['sent', 'unknown', 'unknown', 'unknown', 'unsent'])
  expect(lines.at(-1)).toContain('not sent: the run failed permanently')
  expect(lines.join()).not.toContain('waiting')
  const states = ['sent', 'unknown', 'unknown', 'unknown', 'unsent'].map((state) => ({ state }))
  expect(objects).toMatchObject([{ jobs: [{ posts: states }] }])
})

test('a message of an unfinished run is shown as waiting or sending', async () => {
  const posts = [post(0, { state: 'sending' }), post(1, {})]
  const running = await showPosts(posts, 'running')
  expect(running.lines[0]).toMatch(/sending .* its result is not recorded yet$/)
  expect(running.lines[1]).toMatch(/waiting +slack C1$/)
  const queued = await showPosts(posts, 'queued')
  expect(queued.lines[0]).toMatch(/sending .* it may have arrived, and is sent again$/)
  expect(queued.objects).toMatchObject([{ jobs: [{ posts: [{ state: 'sending' }, { state: 'waiting', at: null }] }] }])
})

test('a message that may have arrived twice is shown with a note', async () => {
  const sent = { state: 'sent', id: 'm' } as const
  const { lines, objects } = await showPosts([post(0, { ...sent, mayBeTwice: true }), post(1, sent)], 'done')
  expect(lines[0]).toContain('it may have arrived twice: an earlier attempt was cut off')
  expect(lines[1]).not.toContain('twice')
  expect(objects).toMatchObject([{ jobs: [{ posts: [{ mayBeTwice: true }, { mayBeTwice: false }] }] }])
})

test('a run shows the reply of its model without control characters, and its cost', async () => {
  const usage = { inputTokens: 11, outputTokens: 7, costUsd: 0.0123 }
  const { text } = await showPosts([], 'done', {
    name: 'run',
    state: 'done',
    at: 1_700_000_000_000,
    detail: 'by ai',
    result: 'The build is green.\nNothing\u001b[31m to do.',
    model: 'mine/small',
    usage,
  })
  expect(text).toContain('by ai, mine/small, 11 tokens in, 7 out, $0.0123')
  expect(text).toMatch(/Reply\n {2}The build is green\.\n {2}Nothing.* to do\./)
  expect(text).not.toContain('\u001b')
})

test('hookloom show says that a wake caused a heartbeat, unless its step has a detail that says why not', async () => {
  const at = 1_700_000_000_000
  expect((await showPosts([], 'done', { name: 'wake', state: 'done', at })).text).toContain(
    'caused a heartbeat turn of the main session',
  )
  const deferred = await showPosts([], 'done', { name: 'wake', state: 'done', at, detail: 'Heartbeats are off.' })
  expect(deferred.text).not.toContain('caused')
})

test.each([
  ['its rate limit', { rateLimit: { limit: 1, period: '1h' } }, 'The rateLimit was reached: 1 in 3600 s had started.'],
  ['a turn of its key', { onNew: 'skip', key: 'one' }, 'A turn of its key was waiting or running when it arrived.'],
])('hookloom show says that a run was skipped because of %s', async (_, flow, reason) => {
  const dir = makeConfigDir()
  const store = createSqliteStore({ file: join(dir, 'state/hookloom.db'), clock: Date.now })
  const [first, second] = ['a', 'b'].map((key) => flowJob({ key, ...flow }))
  for (const job of [first, second]) if (job) await store.append(newDelivery({ at: Date.now(), jobs: [job] }))
  expect((await store.claim({ limit: 9, leaseMs: 60_000 })).map(({ id }) => id)).toEqual([first?.id])
  await store.close()
  const { context, printed } = createShowContext(dir)
  await show({ ...context, json: false }, { id: second?.id ?? '' })
  const text = printed.join('\n')
  expect(text).toMatch(/state +skipped/)
  expect(text).toMatch(new RegExp(`reason +${reason}`))
})

test('hookloom show counts an attempt that found the other side unavailable apart, and calls no delay an error', async () => {
  const dir = makeConfigDir()
  let now = Date.now()
  const store = createSqliteStore({ file: join(dir, 'state/hookloom.db'), clock: () => now })
  const job = newJob()
  await store.append(newDelivery({ at: now, jobs: [job] }))
  const { context, printed } = createShowContext(dir)
  for (const outcome of [{ error: 'down' }, { error: 'it is busy', isDelay: true }]) {
    const [claimed] = await store.claim({ limit: 1, leaseMs: 60_000 })
    if (claimed === undefined) throw new Error('nothing to claim')
    await store.report(claimed, { outcome: { kind: 'retry', afterMs: 1_000, counted: false, ...outcome } })
    now += 1_000
    await show({ ...context, json: false }, { id: job.id })
  }
  await store.close()
  const [failed, delayed] = printed
  expect(failed).toMatch(/attempts +0, and 1 while the other side was unavailable, which does not count$/m)
  expect(failed).toMatch(/last error +down$/m)
  expect(delayed).toMatch(/held back +it is busy$/m)
  expect(delayed).not.toContain('last error')
})
