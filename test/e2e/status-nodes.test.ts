// Commit statuses and callbacks with two gateways on one Postgres: one takes the request, the other one runs it, and either may be killed.
import { createHmac } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createPostgresStore } from '../../src/store/postgres/postgres.ts'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { githubApiToken, startFakeGitHub } from './fakes/github.ts'
import { gitlabApiToken, startFakeGitLab } from './fakes/gitlab.ts'
import { startLoopback } from './fakes/loopback.ts'
import { startFakeReceiver } from './fakes/webhook.ts'
import { startGateway } from './gateway.ts'
import { startInside } from './inside.ts'

const secret = 'a-secret-of-the-webhook'
const callbackSecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const [oldSha, newSha] = ['0123456789abcdef0123456789abcdef01234567', '89abcdef0123456789abcdef0123456789abcdef']

/** Forges with two commits. `push` builds the signed push of a commit. */
const forges = {
  async github() {
    const fake = await startFakeGitHub({ commits: [`acme/app@${oldSha}`, `acme/app@${newSha}`] })
    const push = (sha: string) => {
      const body = JSON.stringify({ repository: { full_name: 'acme/app' }, branch: 'main', after: sha })
      const signature = createHmac('sha256', secret).update(body).digest('hex')
      return { body, headers: { 'x-github-event': 'push', 'x-hub-signature-256': `sha256=${signature}` } }
    }
    return {
      push,
      scheme: 'github',
      channels: { github: { token: githubApiToken, baseUrl: fake.url } },
      listStates: () => fake.statuses.map(({ state }) => state),
    }
  },
  async gitlab() {
    const fake = await startFakeGitLab({ commits: [`acme/app@${oldSha}`, `acme/app@${newSha}`] })
    const push = (sha: string) => ({
      body: JSON.stringify({
        object_kind: 'push',
        project: { path_with_namespace: 'acme/app' },
        branch: 'main',
        after: sha,
      }),
      headers: { 'x-gitlab-event': 'Push Hook', 'x-gitlab-token': secret },
    })
    // GitLab has no `error`
    return {
      push,
      scheme: 'gitlab-token',
      channels: { gitlab: { token: gitlabApiToken, baseUrl: fake.url } },
      listStates: () => fake.changes.map((change) => change.split(':')[0]?.replace('failed', 'error')),
    }
  },
}

/** Two gateways. The first one takes requests, and claims no job until `startClaiming` is called. The model answers when `release` is called. */
async function openPair(name: keyof typeof forges) {
  const { url, drop } = await newSchema()
  onTestFinished(drop)
  const forge = await forges[name]()
  const receiver = await startFakeReceiver({ secret: callbackSecret })
  let open = () => {}
  const released = new Promise<void>((resolve) => (open = resolve))
  const model = await startLoopback(async () => {
    await released
    return { status: 200, body: 'Fine.' }
  })
  const ask = `fetch(${JSON.stringify(model.url)}).then((a) => a.text()).then((t) => console.log(t))`
  const config = {
    hooks: {
      mappings: [
        {
          match: { path: 'in' },
          verify: { scheme: forge.scheme, secret },
          status: 'review',
          callback: 'ci',
          deliver: false,
          wakeMode: 'next-heartbeat',
          messageTemplate: 'Look',
          flow: { onNew: 'replace', key: 'review:{{branch}}' },
        },
      ],
    },
    channels: { ...forge.channels, webhook: { endpoints: { ci: { url: receiver.url, secret: callbackSecret } } } },
    agents: { defaults: { runner: 'asks', heartbeat: { every: 0 } } },
    runners: { asks: { kind: 'command', command: process.execPath, args: ['-e', ask] } },
  }
  const store = createPostgresStore({ url })
  let works = false
  const claim: typeof store.claim = async (wanted) => (works ? store.claim(wanted) : [])
  const first = await startInside({ store: { ...store, claim }, config })
  onTestFinished(first.stop)
  const push = async (sha: string) => {
    const { body, headers } = forge.push(sha)
    const response = await fetch(`${first.url}/in`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
    })
    expect(response.status).toBe(200)
  }
  /** Resolves when no job is left. */
  const drain = async () => {
    await expect
      .poll(
        async () => {
          const { queued, running } = (await store.counts()).jobs
          return queued + running
        },
        { timeout: 100_000 },
      )
      .toBe(0)
  }
  return {
    push,
    drain,
    listStates: forge.listStates,
    /** The events of the callbacks, each id once. */
    listCallbacks: () => {
      const byId = new Map(receiver.received.map(({ headers, body }) => [headers['webhook-id'], body]))
      return [...byId.values()].map((body) => (body as { type: string }).type)
    },
    countCalls: () => model.received.length,
    release: open,
    startClaiming: () => (works = true),
    startSecond: () => startInside({ store: createPostgresStore({ url }), config }),
    startChild: () => startGateway({ config: { ...config, store: { url } } }),
  }
}

const slow = { timeout: 60_000 }

describe.skipIf(whyNoPostgres !== undefined).each(['github', 'gitlab'] as const)(
  `the status of a commit at %s (${whyNoPostgres ?? 'with Postgres'})`,
  { timeout: 120_000 },
  (name) => {
    test('a commit status is set once to each state if one gateway takes the request and the other one runs it', async () => {
      const pair = await openPair(name)
      await pair.push(oldSha)
      const second = await pair.startSecond()
      onTestFinished(second.stop)
      await expect.poll(pair.listStates, slow).toHaveLength(1)
      pair.startClaiming()
      pair.release()
      await pair.drain()
      expect([pair.listStates(), pair.listCallbacks()]).toEqual([['pending', 'success'], ['run.done']])
    })

    test('a commit status becomes "error" if a request at the other gateway replaces the run, and the newer run sets its own status', async () => {
      const pair = await openPair(name)
      await pair.push(oldSha)
      const second = await pair.startSecond()
      onTestFinished(second.stop)
      await expect.poll(pair.countCalls, slow).toBe(1)
      await expect.poll(pair.listStates, slow).toHaveLength(1)
      await pair.push(newSha)
      pair.startClaiming()
      await expect.poll(() => pair.listStates().length, slow).toBe(3)
      pair.release()
      await pair.drain()
      expect(pair.listStates().toSorted()).toEqual(['error', 'pending', 'pending', 'success'])
      expect(pair.listStates().at(-1)).toBe('success')
      expect(pair.listCallbacks().toSorted()).toEqual(['run.dead', 'run.done'])
    })

    test('a commit status is set by the remaining gateway if the one with the run is killed', async () => {
      const pair = await openPair(name)
      await pair.push(oldSha)
      const child = await pair.startChild()
      await expect.poll(pair.countCalls, slow).toBe(1)
      await expect.poll(pair.listStates, slow).toHaveLength(1)
      await child.kill()
      pair.release()
      pair.startClaiming()
      await pair.drain()
      expect([pair.listStates(), pair.listCallbacks()]).toEqual([['pending', 'success'], ['run.done']])
    })
  },
)
