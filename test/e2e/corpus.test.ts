// Real payloads over HTTP: which media types are accepted, and which actions the payloads become.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { readDeliveryId, readVerdict } from './answers.ts'
import { type Inside, readStore, startInside } from './inside.ts'
import { bearer, type Headers, post, type Reply, send } from './wire.ts'

const corpus = process.env['HOOKLOOM_CORPUS'] ?? ''
const transform = readFileSync(join(import.meta.dirname, '../../transforms/github-pull-request.ts'), 'utf8')

const Captured = z.object({ headers: z.record(z.string(), z.string()), body: z.json() })
type Captured = z.infer<typeof Captured>

let gateway: Inside

beforeAll(async () => {
  gateway = await startInside({
    config: {
      hooks: {
        presets: ['gmail'],
        allowedSessionKeyPrefixes: ['hook:'],
        mappings: [
          {
            id: 'pull-requests',
            match: { path: 'github', event: 'pull_request' },
            transform: { module: 'github-pull-request.ts' },
            deliver: false,
          },
          { id: 'all', match: { path: 'all' }, deliver: false },
        ],
      },
    },
    files: { 'hooks/transforms/github-pull-request.ts': transform },
  })
})

const listFolders = () =>
  corpus === ''
    ? ['none']
    : readdirSync(corpus, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? entry.name : []))

function readCaptures(folder: string, pattern = /\.json$/): [string, Captured][] {
  const names = readdirSync(join(corpus, folder)).filter((name) => pattern.test(name))
  return names.map((name) => [name, Captured.parse(JSON.parse(readFileSync(join(corpus, folder, name), 'utf8')))])
}

/** Posts a request as its sender does: a form as a form, everything else as its text. */
function deliver(path: string, { headers, body }: Captured): Promise<Reply> {
  const own = Object.entries(headers).filter(([name]) => !/^(authorization|content-length|host)$/i.test(name))
  return send(gateway.port, { target: `/hooks/${path}`, headers: [...bearer, ...own], body: toBody(headers, body) })
}

const findType = (headers: Captured['headers']) =>
  Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? ''

function toBody(headers: Captured['headers'], body: Captured['body']): string {
  if (typeof body === 'string') return body
  if (!/urlencoded/.test(findType(headers)) || body === null || typeof body !== 'object') return JSON.stringify(body)
  const form = new URLSearchParams()
  for (const [name, value] of Object.entries(body)) {
    form.append(name, typeof value === 'string' ? value : JSON.stringify(value))
  }
  return form.toString()
}

/** The actions that a delivery became. */
async function readActions(id: string) {
  const record = await readStore(gateway.dir, (reader) => reader.delivery(id))
  return (record?.jobs ?? []).map(({ planned }) => planned)
}

const isTaken = (type: string) => type === '' || /^application\/(.+\+)?(json|x-www-form-urlencoded)\b/.test(type)

describe.skipIf(corpus === '')('a corpus of real payloads (skipped when HOOKLOOM_CORPUS names no folder)', () => {
  test.each(listFolders())('JSON and forms from %s are accepted, and other media types are refused', async (folder) => {
    for (const [name, captured] of readCaptures(folder)) {
      const reply = await deliver('all', captured)
      const expected = isTaken(findType(captured.headers)) ? 'accepted' : 'media-type-unsupported'
      expect([name, readVerdict(reply)]).toEqual([name, expected])
    }
  })

  test('the corpus has 259 payloads', () => {
    expect(listFolders().flatMap((folder) => readCaptures(folder))).toHaveLength(259)
  })

  test('an opened pull request becomes one agent action, and a closed pull request becomes no action', async () => {
    for (const [, captured] of readCaptures('github', /^pull_request\.opened\.json$/)) {
      const actions = await readActions(readDeliveryId(await deliver('github', captured)))
      expect(actions).toMatchObject([
        { kind: 'agent', sessionKey: 'hook:pr:Codertocat/Hello-World#2', origin: { source: 'github' } },
      ])
    }
    for (const [, captured] of readCaptures('github', /^pull_request\.(closed|locked)\.json$/)) {
      expect(readVerdict(await deliver('github', captured))).toBe('skipped')
    }
  })

  test('an event other than a pull request is skipped', async () => {
    for (const [, captured] of readCaptures('github', /^(issues\.opened|ping)\.json$/)) {
      expect(readVerdict(await deliver('github', captured))).toBe('skipped')
    }
  })
})

// a short form of https://docs.github.com/webhooks/webhook-events-and-payloads#pull_request
const opened = {
  action: 'opened',
  number: 7,
  pull_request: {
    title: 'Teach the loom to count',
    html_url: 'https://github.example/acme/loom/pull/7',
    body: 'It miscounted.',
    draft: false,
    user: { login: 'ada' },
    head: { ref: 'count', label: 'ada:count' },
    base: { ref: 'main' },
  },
  repository: { full_name: 'acme/loom' },
}
const pullRequest: Headers = [
  ['x-github-event', 'pull_request'],
  ['user-agent', 'GitHub-Hookshot/044aadd'],
]

test('a pull request becomes the message of its transform, and a draft becomes nothing', async () => {
  const actions = await readActions(readDeliveryId(await post(gateway.port, '/hooks/github', opened, pullRequest)))
  expect(actions).toMatchObject([
    {
      kind: 'agent',
      sessionKey: 'hook:pr:acme/loom#7',
      action: { message: expect.stringContaining('Teach the loom to count'), deliver: false },
    },
  ])
  const draft = { ...opened, pull_request: { ...opened.pull_request, draft: true } }
  expect(readVerdict(await post(gateway.port, '/hooks/github', draft, pullRequest))).toBe('skipped')
})

test('three mails in one body become three runs, each with its own text and session', async () => {
  const messages = ['Ada', 'Grace', 'Mary'].map((name, index) => ({
    id: `18c${index}`,
    from: `${name} <${name.toLowerCase()}@mail.example>`,
    subject: `From ${name}`,
    snippet: `Dear loom, ${name}`,
    body: `Dear loom,\n\nall is well.\n\n${name}`,
  }))
  const reply = await post(gateway.port, '/hooks/gmail', { source: 'gmail', messages })
  const actions = await readActions(readDeliveryId(reply))
  expect(JSON.parse(reply.body)).toMatchObject({
    runIds: [expect.any(String), expect.any(String), expect.any(String)],
    wakes: 0,
  })
  expect(actions.map(({ sessionKey }) => sessionKey)).toEqual(['hook:gmail:18c0', 'hook:gmail:18c1', 'hook:gmail:18c2'])
  for (const [index, name] of ['Ada', 'Grace', 'Mary'].entries()) {
    const text = JSON.stringify(actions[index])
    expect(['Ada', 'Grace', 'Mary'].filter((other) => text.includes(`From ${other}`))).toEqual([name])
  }
  expect(readVerdict(await post(gateway.port, '/hooks/gmail', { source: 'gmail', messages: [] }))).toBe('skipped')
})
