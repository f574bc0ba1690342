// The three recipes about turns, as the page prints them. The agent is a real process or the fake of a provider.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'jsonc-parser'
import { expect, test, vi } from 'vitest'
import { BudgetConfig, findPeriod } from '../../src/model/budgets.ts'
import { createSqliteStore } from '../../src/store/sqlite/sqlite.ts'
import { readBlock } from '../pages.ts'
import { openai } from './fakes/openai.ts'
import { apiKey, staySilent, replyWith, startFakeProvider } from './fakes/provider.ts'
import { gatewayToken, makeConfigDir, makeFolder } from './gateway.ts'
import { type Inside, readStore, startInside } from './inside.ts'
import { findFixture, isAlive } from './runner-command-stage.ts'
import { post } from './wire.ts'

const page = 'src/cli/recipes/README.md'
const waits = { timeout: 60_000, interval: 20 }
const readExample = (mark: string) => parse(readBlock(page, 'jsonc', mark)) as Record<string, object>

/** A gateway with an example of the page. Its runs are processes that wait for the file `go`. The test can move its clock forward. */
async function openExample(mark: string, mood = '') {
  const folder = makeFolder()
  const posts: string[] = []
  let moved = 0
  const clock = () => Date.now() + moved
  const dir = makeConfigDir({
    config: {
      ...readExample(mark),
      agents: { defaults: { runner: 'reviewer', heartbeat: { every: 0 } } },
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
  mkdirSync(join(dir, 'state'), { recursive: true })
  const store = createSqliteStore({ file: join(dir, 'state/hookloom.db'), clock })
  const gateway = await startInside({ dir, store, clock, write: ({ text }) => void posts.push(text) })
  const readStarted = () =>
    existsSync(join(folder, 'started')) ? readFileSync(join(folder, 'started'), 'utf8').trim().split('\n') : []
  return {
    gateway,
    posts,
    readStarted,
    releaseRuns: () => writeFileSync(join(folder, 'go'), ''),
    wait: (ms: number) => void (moved += ms),
    /** Waits until a run of this head commit has started. Returns the id of its process. */
    findRun: (head: number) =>
      vi.waitFor(() => {
        const line = readStarted().find((each) => each.endsWith(` ${head}`))
        if (line === undefined) throw new Error(`no run of head ${head} has started`)
        return Number(line.split(' ')[0])
      }, waits),
  }
}

async function send(gateway: Inside, hook: string, payload: object): Promise<string> {
  const { status, body } = await post(gateway.port, `/hooks/${hook}`, payload)
  expect([200, 204]).toContain(status)
  return status === 204 ? '' : String((JSON.parse(String(body)) as { runId: string }).runId)
}

const readState = ({ dir }: Inside, runId: string) => readStore(dir, async (store) => (await store.job(runId))?.state)

async function readRun({ adminUrl }: Inside, runId: string) {
  const headers = { authorization: `Bearer ${gatewayToken}` }
  return (await (await fetch(`${adminUrl}/api/runs/${runId}`, { headers })).json()) as { state: string; waits?: string }
}

test.each(['obedient', 'stubborn'])(
  'many pushes get one review, of the newest push, and closing the pull request ends a review that waits (the command is %s)',
  { timeout: 120_000 },
  async (mood) => {
    const { gateway, posts, readStarted, releaseRuns, wait, findRun } = await openExample('"id": "reviews"', mood)
    const push = (head: number, pull = 7, action = 'synchronize') => {
      const pullRequest = { id: pull, html_url: `https://github.test/${pull}`, head: { sha: `head ${head}` } }
      return send(gateway, 'review', { action, pull_request: pullRequest })
    }
    const runs: string[] = []
    for (let head = 1; head <= 20; head += 1) {
      runs.push(await push(head))
      wait(3_000)
    }
    const newest = runs.pop() ?? ''
    await vi.waitFor(async () => {
      expect((await readRun(gateway, newest)).waits).toMatch(/^waits until .+Z for a quiet period$/)
    }, waits)
    expect(readStarted()).toEqual([])
    wait(30_000)
    // a request for another pull request makes the gateway look at once, not when its timer ends
    await push(100, 8)
    const pid = await findRun(20)
    const later = await push(21)
    await vi.waitFor(async () => expect(await readState(gateway, newest)).toBe('superseded'), waits)
    expect(isAlive(pid)).toBe(false)
    wait(30_000)
    await push(101, 9)
    await findRun(21)
    releaseRuns()
    await vi.waitFor(async () => expect(await readState(gateway, later)).toBe('done'), waits)
    const states = await Promise.all(runs.map((id) => readState(gateway, id)))
    expect(new Set(states)).toEqual(new Set(['superseded']))
    const closed = await push(22)
    expect(await push(22, 7, 'closed')).toBe('')
    await vi.waitFor(async () => expect(await readState(gateway, closed)).toBe('cancelled'), waits)
    const reviews = posts.filter((text) => /Reviewed head (\d|1\d|2\d)\./.test(text))
    expect(reviews).toEqual([expect.stringContaining('Reviewed head 21.')])
  },
)

test(
  'at most two runs of a customer run at once, and a third run says what it waits for',
  { timeout: 120_000 },
  async () => {
    const { gateway, readStarted, releaseRuns } = await openExample('"id": "tickets"')
    const ask = (head: number, id: string) => send(gateway, 'ticket', { subject: `head ${head}`, customer: { id } })
    const runs = [await ask(1, 'acme'), await ask(2, 'acme'), await ask(3, 'acme'), await ask(4, 'other')]
    await vi.waitFor(() => expect(readStarted()).toHaveLength(3), waits)
    await vi.waitFor(async () => {
      const third = await readRun(gateway, runs[2] ?? '')
      expect(third).toMatchObject({ state: 'queued', waits: expect.stringMatching(/^waits for .*2 /) })
    }, waits)
    expect(
      readStarted()
        .map((line) => line.split(' ')[1])
        .toSorted(),
    ).toEqual(['1', '2', '4'])
    releaseRuns()
    for (const run of runs) await vi.waitFor(async () => expect(await readState(gateway, run)).toBe('done'), waits)
  },
)

type Priced = { readonly models: { readonly providers: { readonly openai: object } } }

/** A gateway with the example of 20 dollars a day, and an agent for `ask`. Only the provider's address and `over` replace printed values. */
function openDay(baseUrl: string, over: object = {}) {
  const example = readExample('"daily"') as Record<string, object> & Priced
  const provider = { ...example.models.providers.openai, baseUrl, ...over }
  return startInside({
    env: { OPENAI_API_KEY: apiKey },
    config: {
      ...example,
      models: { providers: { openai: provider } },
      hooks: { mappings: [{ match: { path: 'ask' }, messageTemplate: '{{text}}' }] },
      channels: { default: { channel: 'console' } },
    },
  })
}

test(
  'the example of a budget of 20 dollars a day runs as printed, and counts a turn at its prices',
  { timeout: 120_000 },
  async () => {
    const fake = await startFakeProvider(openai)
    fake.answer = replyWith('It boils.')
    const gateway = await openDay(fake.baseUrl)
    const run = await send(gateway, 'ask', { text: 'one' })
    await vi.waitFor(async () => expect(await readState(gateway, run)).toBe('done'), waits)
    const { budgets } = readExample('"daily"') as { budgets: { daily: object } }
    const { startsAt } = findPeriod(BudgetConfig.parse(budgets.daily), Date.now())
    const [account] = await readStore(gateway.dir, (store) => store.accounts([{ name: 'daily', startsAt }]))
    // 11 tokens for $0.25 a million, and 7 for $2 a million, in billionths of a dollar
    expect(account).toMatchObject({ spent: { nanos: 11 * 250 + 7 * 2_000, tokens: 18, turns: 1 } })
    await gateway.stop()
    await fake.close()
  },
)

test(
  'a turn that could exceed the budget of 20 dollars a day waits, and its run names the budget',
  { timeout: 120_000 },
  async () => {
    const fake = await startFakeProvider(openai)
    // a turn reserves 16,384 tokens of output: at this price, $16
    const models = [{ id: 'gpt-5-mini', cost: { input: 0.25, output: 1_000 }, maxTokens: 16_384 }]
    const gateway = await openDay(fake.baseUrl, { models })
    fake.answer = staySilent
    const runs = [await send(gateway, 'ask', { text: 'one' }), await send(gateway, 'ask', { text: 'two' })]
    await vi.waitFor(async () => {
      const seen = await Promise.all(runs.map((run) => readRun(gateway, run)))
      expect(seen.filter(({ state }) => state === 'running')).toHaveLength(1)
      expect(seen.find(({ state }) => state === 'queued')?.waits).toMatch(/^waits until .* for the budget daily/)
    }, waits)
    await gateway.stop()
    await fake.close()
  },
)
