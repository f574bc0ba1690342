// Flows in a whole gateway, with a real process as the runner.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { runCommand } from './command.ts'
import { makeFolder } from './gateway.ts'
import { type Inside, readStore, startInside } from './inside.ts'
import { findFixture, isAlive } from './runner-command-stage.ts'

const token = 'flow-token-0123456789abcdef'
const waits = { timeout: 60_000, interval: 20 }

type Push = { readonly action: string; readonly head: number; readonly pull?: number }

/** A gateway with one mapping for pull requests, whose runs wait for the file `go`. */
async function openReviews(flow: object, { mood = '', maxConcurrent = 4, isByCode = false } = {}) {
  const folder = makeFolder()
  const posts: string[] = []
  const gateway = await startInside({
    write: ({ text }) => void posts.push(text),
    files: isByCode ? { 'hooks/transforms/review.ts': toTransform(flow) } : {},
    config: {
      server: { port: 0, adminPort: 0 },
      hooks: {
        enabled: true,
        token,
        mappings: [
          {
            match: { path: 'pr', payload: { action: ['opened', 'synchronize'] } },
            messageTemplate: 'Pull request {{pull}}, head {{head}}',
            sessionKey: 'hook:pr:{{pull}}',
            ...(isByCode ? { transform: { module: 'review.ts' } } : { flow }),
          },
        ],
      },
      agents: { defaults: { maxConcurrent, runner: 'reviewer', heartbeat: { every: 0 } } },
      runners: {
        reviewer: {
          kind: 'command',
          command: process.execPath,
          args: [findFixture('reviewer'), folder, mood],
          killAfterMs: 50,
        },
      },
      channels: { default: { channel: 'console' } },
    },
  })
  const readStarted = () =>
    existsSync(join(folder, 'started'))
      ? readFileSync(join(folder, 'started'), 'utf8')
          .trim()
          .split('\n')
          .map((line) => line.split(' '))
      : []
  return {
    gateway,
    posts,
    readStarted,
    send: (push: Push) => send(gateway, push),
    releaseRuns: () => writeFileSync(join(folder, 'go'), ''),
    /** Waits until a run of this head commit has started. Returns the id of its process. */
    findRun: (head: number) =>
      vi.waitFor(() => {
        const [pid] = readStarted().find(([, heads]) => heads?.split(',').includes(String(head))) ?? []
        if (pid === undefined) throw new Error(`no run of head ${head} has started`)
        return Number(pid)
      }, waits),
  }
}

/** A module that returns the flow, with the pull request as its key. */
function toTransform(flow: object): string {
  return `export default ({ payload }: { payload: { pull: number } }) =>
    ({ flow: { ...${JSON.stringify(flow)}, key: 'pr:' + payload.pull } })`
}

async function send({ url }: Inside, push: Push): Promise<string> {
  const answer = await fetch(`${url}/pr`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ pull: 7, ...push }),
  })
  expect([200, 204]).toContain(answer.status)
  return answer.status === 204 ? '' : String(((await answer.json()) as { runId: string }).runId)
}

const readState = ({ dir }: Inside, runId: string) => readStore(dir, async (store) => (await store.job(runId))?.state)
const waitForState = (gateway: Inside, runId: string, state: string) =>
  vi.waitFor(async () => expect(await readState(gateway, runId)).toBe(state), waits)

const replace = {
  key: 'pr:{{pull}}',
  onNew: 'replace',
  cancelOn: { payload: { action: 'closed' } },
}

describe('one review per pull request', () => {
  test.each(['obedient', 'stubborn'])(
    'twenty pushes get one review, of the newest push, if the command is %s',
    async (mood) => {
      const { gateway, posts, send: push, releaseRuns, findRun } = await openReviews(replace, { mood })
      const first = await push({ action: 'opened', head: 1 })
      const pid = await findRun(1)
      const others: string[] = []
      for (let head = 2; head <= 20; head += 1) others.push(await push({ action: 'synchronize', head }))
      const newest = others.pop() ?? ''
      await waitForState(gateway, first, 'superseded')
      expect(isAlive(pid)).toBe(false)
      await findRun(20)
      releaseRuns()
      await waitForState(gateway, newest, 'done')
      const states = await Promise.all(others.map((id) => readState(gateway, id)))
      expect(new Set(states)).toEqual(new Set(['superseded']))
      expect(posts.filter((text) => text.includes('Reviewed')).length).toBe(1)
      expect(posts.join('')).toContain('Reviewed head 20.')
    },
  )

  test('a newer request ends a turn whose flow the transform set, even if no slot is free', async () => {
    const options = { maxConcurrent: 1, isByCode: true }
    const { gateway, send: push, releaseRuns, findRun } = await openReviews({ onNew: 'replace' }, options)
    const first = await push({ action: 'opened', head: 1 })
    const pid = await findRun(1)
    const second = await push({ action: 'synchronize', head: 2 })
    await waitForState(gateway, first, 'superseded')
    expect(isAlive(pid)).toBe(false)
    await findRun(2)
    releaseRuns()
    await waitForState(gateway, second, 'done')
  })

  test('closing the pull request ends its review, and no other', async () => {
    const { gateway, posts, send: push, releaseRuns, findRun } = await openReviews(replace)
    const closed = await push({ action: 'opened', head: 1 })
    const other = await push({ action: 'opened', head: 2, pull: 8 })
    const pid = await findRun(1)
    await findRun(2)
    expect(await push({ action: 'closed', head: 1 })).toBe('')
    await waitForState(gateway, closed, 'cancelled')
    expect(isAlive(pid)).toBe(false)
    releaseRuns()
    await waitForState(gateway, other, 'done')
    expect(posts.filter((text) => text.includes('Reviewed'))).toEqual([expect.stringContaining('Reviewed head 2.')])
  })

  test('hookloom list and the metrics include the runs that a flow ended before they started', async () => {
    const { gateway, send: push, releaseRuns, findRun } = await openReviews({ key: 'all', onNew: 'skip' })
    const first = await push({ action: 'opened', head: 1 })
    await findRun(1)
    const second = await push({ action: 'synchronize', head: 2 })
    await waitForState(gateway, second, 'skipped')
    expect((await runCommand(['list'], { dir: gateway.dir })).stdout).toMatch(
      /accepted +skipped .*Pull request 7, head 2/,
    )
    await vi.waitFor(async () => {
      const page = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
      expect(page).toContain('hookloom_flow_ends_total{by="skip"} 1\n')
    }, waits)
    releaseRuns()
    await waitForState(gateway, first, 'done')
  })

  test('one turn reads all requests that came while the turn before it ran', async () => {
    const { gateway, posts, send: push, releaseRuns, findRun } = await openReviews({ key: 'all', onNew: 'gather' })
    const first = await push({ action: 'opened', head: 1 })
    await findRun(1)
    const runs: string[] = []
    for (let head = 2; head <= 5; head += 1) runs.push(await push({ action: 'synchronize', head }))
    releaseRuns()
    await waitForState(gateway, first, 'done')
    await waitForState(gateway, runs.at(-1) ?? '', 'done')
    expect(await readState(gateway, runs[0] ?? '')).toBe('superseded')
    await vi.waitFor(() => expect(posts.join('')).toContain('Reviewed head 2,3,4,5.'), waits)
  })
})
