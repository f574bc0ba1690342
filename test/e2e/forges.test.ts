// Replies where the event happened: the presets of forges find the issue or the pull request, and no reply starts a run.
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { githubApiToken, startFakeGitHub } from './fakes/github.ts'
import { gitlabApiToken, startFakeGitLab } from './fakes/gitlab.ts'
import { linearApiKey, startFakeLinear } from './fakes/linear.ts'
import { hookToken } from './gateway.ts'
import { readStore, startInside } from './inside.ts'
import { drain } from './aftermath.ts'

type Request = { readonly headers: Readonly<Record<string, string>>; readonly payload: object }

function readFixture(preset: string, name: string): Request {
  const file = join(import.meta.dirname, `../../presets/${preset}/fixtures/${name}.json`)
  // as: fixtures have this form
  return (JSON.parse(readFileSync(file, 'utf8')) as { request: Request }).request
}

const secret = 'a-secret-of-the-webhook'

/** Sends a request. Signs it if its headers are those of GitHub. */
async function send(url: string, { headers, payload }: Request): Promise<number> {
  const body = JSON.stringify(payload)
  const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
  const proof = headers['x-github-event'] === undefined ? {} : { 'x-hub-signature-256': signature }
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...headers, ...proof, 'content-type': 'application/json', authorization: `Bearer ${hookToken}` },
    body,
  })
  return response.status
}

async function startWithGitHub(preset: object = {}, channels: object = {}) {
  const fake = await startFakeGitHub({ issues: ['harbour-works/loom#32', 'harbour-works/loom#31'] })
  const gateway = await startInside({
    config: {
      hooks: { presets: [{ name: 'github', secret, ...preset }] },
      channels: { github: { token: githubApiToken, baseUrl: fake.url }, ...channels },
    },
  })
  return { fake, gateway }
}

test.each([
  ['the channel of the preset', { channel: 'github' }, {}],
  ['the default channel', {}, { default: { channel: 'github' } }],
])('a reply goes to the pull request or the issue of the event, if github is %s', async (_, preset, channels) => {
  const { fake, gateway } = await startWithGitHub(preset, channels)
  expect(await send(`${gateway.url}/github`, readFixture('github', 'pull-request-opened'))).toBe(200)
  expect(await send(`${gateway.url}/github`, readFixture('github', 'comment-created'))).toBe(200)
  await drain(gateway.dir)
  expect(fake.comments.map(({ issue }) => issue).toSorted()).toEqual(['harbour-works/loom#31', 'harbour-works/loom#32'])
  expect(fake.comments[0]?.body).toContain('<!-- hookloom:')
})

test('a reply to an event without an issue has no recipient, and the job says so', async () => {
  const { fake, gateway } = await startWithGitHub({ channel: 'github' })
  expect(await send(`${gateway.url}/github`, readFixture('github', 'release-published'))).toBe(200)
  await drain(gateway.dir)
  const [record] = await readStore(gateway.dir, (store) => store.deliveries({ limit: 9 }))
  expect(record?.jobs).toMatchObject([{ state: 'dead', lastError: expect.stringContaining('set channels.github.to') }])
  expect(fake.comments).toEqual([])
})

test('the comment of an agent starts no run, even if a person’s token posted it', async () => {
  const { fake, gateway } = await startWithGitHub({ channel: 'github' })
  const asked = readFixture('github', 'comment-created')
  expect(await send(`${gateway.url}/github`, asked)).toBe(200)
  await drain(gateway.dir)
  const posted = fake.comments[0]?.body ?? ''
  const payload = { ...asked.payload, comment: { id: 89, body: posted } }
  const headers = { ...asked.headers, 'x-github-delivery': 'a-second-delivery' }
  expect(await send(`${gateway.url}/github`, { headers, payload })).toBe(204)
  const people = { headers: { ...headers, 'x-github-delivery': 'a-third-delivery' }, payload: asked.payload }
  expect(await send(`${gateway.url}/github`, people)).toBe(200)
  const records = await readStore(gateway.dir, (store) => store.deliveries({ limit: 9 }))
  expect(records.map(({ state }) => state)).toEqual(['accepted', 'skipped', 'accepted'])
  expect(records[1]?.log).toEqual(['The request is about a comment that Hookloom posted.'])
})

test('a request whose payload only claims to be from GitHub cannot choose a recipient', async () => {
  const { fake, gateway } = await startWithGitHub({}, { default: { channel: 'github' } })
  const { payload } = readFixture('github', 'pull-request-opened')
  const claims = { ...payload, source: 'github', message: 'Hello.' }
  expect(await send(`${gateway.url}/agent`, { headers: {}, payload: { ...claims, channel: 'github' } })).toBe(200)
  await drain(gateway.dir)
  expect(fake.comments).toEqual([])
})

const sha = '0123456789abcdef0123456789abcdef01234567'

async function startWithStatus() {
  const fake = await startFakeGitHub({ issues: ['harbour-works/loom#32'], commits: [`harbour-works/loom@${sha}`] })
  const gateway = await startInside({
    config: {
      hooks: { presets: [{ name: 'github', secret, channel: 'github', status: 'review' }] },
      channels: { github: { token: githubApiToken, baseUrl: fake.url } },
    },
  })
  const opened = readFixture('github', 'pull-request-opened')
  // as: the fixture has this form
  const { pull_request: pull } = opened.payload as { pull_request: object }
  const request = { ...opened, payload: { ...opened.payload, pull_request: { ...pull, head: { ref: 'fix', sha } } } }
  return { fake, gateway, request }
}

test('a commit status is first "pending" and then "success", and its delivery has one run', async () => {
  const { fake, gateway, request } = await startWithStatus()
  expect(await send(`${gateway.url}/github`, request)).toBe(200)
  await drain(gateway.dir)
  const [record] = await readStore(gateway.dir, (store) => store.deliveries({ limit: 9 }))
  const [run] = record?.jobs ?? []
  expect(record?.jobs).toHaveLength(1)
  expect(fake.statuses.map(({ commit, context, state, description }) => [commit, context, state, description])).toEqual(
    [
      [`harbour-works/loom@${sha}`, 'review', 'pending', `Run ${run?.id} has not ended.`],
      [`harbour-works/loom@${sha}`, 'review', 'success', `Run ${run?.id} is done.`],
    ],
  )
  expect(fake.comments).toHaveLength(1)
})

test('a run whose reply cannot be delivered ends with the commit status "error"', async () => {
  const { fake, gateway, request } = await startWithStatus()
  const elsewhere = { ...request.payload, number: 99, repository: { full_name: 'harbour-works/loom' } }
  // as: the fixture has this form
  const { pull_request: pull } = request.payload as unknown as { pull_request: object }
  const unknown = { ...elsewhere, pull_request: { ...pull, number: 99 } }
  expect(await send(`${gateway.url}/github`, { ...request, payload: unknown })).toBe(200)
  await expect.poll(() => fake.statuses.map(({ state }) => state)).toEqual(['pending', 'error'])
})

test('a reply goes to the merge request of GitLab with its status, and starts no run', async () => {
  const commit = `harbour/loom@${sha}`
  const fake = await startFakeGitLab({ places: ['harbour/loom!7'], commits: [commit] })
  const gateway = await startInside({
    config: {
      hooks: { presets: [{ name: 'gitlab', secret, channel: 'gitlab', status: 'review' }] },
      channels: { gitlab: { token: gitlabApiToken, baseUrl: fake.url } },
    },
  })
  const post = (payload: object) =>
    fetch(`${gateway.url}/gitlab`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-gitlab-event': 'Note Hook', 'x-gitlab-token': secret },
      body: JSON.stringify(payload),
    }).then(({ status }) => status)
  const { payload: asked } = readFixture('gitlab', 'merge-request-comment')
  const payload = { ...asked, merge_request: { iid: 7, title: 'Oil', last_commit: { id: sha } } }
  expect(await post(payload)).toBe(200)
  await drain(gateway.dir)
  expect(fake.notes.map(({ place }) => place)).toEqual(['harbour/loom!7'])
  expect(fake.changes).toEqual([
    expect.stringMatching(/^pending: Run .* has not ended\.$/),
    expect.stringMatching(/^success: Run .* is done\.$/),
  ])
  const own = { id: 1, noteable_type: 'MergeRequest', note: fake.notes[0]?.body }
  expect(await post({ ...payload, object_attributes: own })).toBe(204)
})

test('a reply goes to the issue of Linear, and starts no run', async () => {
  const fake = await startFakeLinear()
  const gateway = await startInside({
    config: {
      hooks: { presets: [{ name: 'linear', secret, channel: 'linear' }] },
      channels: { linear: { apiKey: linearApiKey, baseUrl: fake.url } },
    },
  })
  const post = (payload: object) => {
    const body = JSON.stringify({ ...payload, webhookTimestamp: Date.now() })
    const signature = createHmac('sha256', secret).update(body).digest('hex')
    const headers = { 'content-type': 'application/json', 'linear-event': 'Comment', 'linear-signature': signature }
    return fetch(`${gateway.url}/linear`, { method: 'POST', headers, body }).then(({ status }) => status)
  }
  const { payload } = readFixture('linear', 'comment-created')
  expect(await post(payload)).toBe(200)
  await drain(gateway.dir)
  expect(fake.comments.map(({ issueId }) => issueId)).toEqual(['539068e2-ae88-4d09-bd75-22eb4a59612f'])
  const [{ id, body } = { id: '', body: '' }] = fake.comments
  expect(await post({ ...payload, data: { id, body, issueId: 'ENG-17' } })).toBe(204)
})

test('the preset linear has no option for a commit status', async () => {
  const preset = { name: 'linear', secret, channel: 'linear', status: 'review' }
  const config = { hooks: { presets: [preset] }, channels: { linear: { apiKey: linearApiKey } } }
  const thrown: unknown = await startInside({ config }).catch((error: unknown) => error)
  expect(thrown).toMatchObject({ code: 'config-invalid' })
  expect(thrown).toMatchObject({ frame: expect.stringContaining('"status" is not an option of this preset.') })
})
