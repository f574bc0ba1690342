// The recipe "Answer at the pull request", as the page prints it, with the fake of GitHub's API and a command as the agent.
import { createHmac } from 'node:crypto'
import { parse } from 'jsonc-parser'
import { expect, test } from 'vitest'
import { readBlock } from '../pages.ts'
import { drain } from './aftermath.ts'
import { githubApiToken, startFakeGitHub } from './fakes/github.ts'
import { startInside } from './inside.ts'

const secret = 'a-secret-of-the-webhook'
const sha = '0123456789abcdef0123456789abcdef01234567'

/** A gateway with the example of the page, whose agent answers with this text. Only the address of the API differs from the page. */
async function openExample(reply: string) {
  const fake = await startFakeGitHub({ issues: ['acme/app#7'], commits: [`acme/app@${sha}`] })
  // as: the example has this form
  const example = parse(readBlock('src/cli/recipes/README.md', 'jsonc', '"id": "verdicts"')) as {
    channels: { github: object }
    hooks: object
  }
  const command = { kind: 'command', command: process.execPath, args: ['-e', `console.log(${JSON.stringify(reply)})`] }
  const gateway = await startInside({
    config: {
      hooks: example.hooks,
      channels: { github: { ...example.channels.github, baseUrl: fake.url } },
      agents: { defaults: { runner: 'reviewer', heartbeat: { every: 0 } } },
      runners: { reviewer: command },
    },
    env: { GITHUB_TOKEN: githubApiToken, GITHUB_WEBHOOK_SECRET: secret },
  })
  return { fake, gateway }
}

async function push(url: string, action: string): Promise<number> {
  const body = JSON.stringify({
    action,
    repository: { full_name: 'acme/app' },
    pull_request: {
      id: 70,
      number: 7,
      title: 'Boil faster',
      html_url: 'https://github.com/acme/app/pull/7',
      head: { sha },
    },
  })
  const signature = createHmac('sha256', secret).update(body).digest('hex')
  const response = await fetch(`${url}/verdict`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-github-event': 'pull_request',
      'x-github-delivery': `delivery-${action}`,
      'x-hub-signature-256': `sha256=${signature}`,
    },
    body,
  })
  return response.status
}

test.each([
  ['pass', 'success'],
  ['fail', 'failure'],
])('a review with the verdict %s becomes a comment on the pull request and the status %s', async (word, state) => {
  const { fake, gateway } = await openExample(`The change is small.\n\n${word}`)
  expect(await push(gateway.url, 'opened')).toBe(200)
  await drain(gateway.dir)
  expect(fake.comments).toMatchObject([{ issue: 'acme/app#7', body: expect.stringContaining('The change is small.') }])
  expect(fake.statuses.map(({ context, state: set }) => [context, set])).toEqual([
    ['review', 'pending'],
    ['review', state],
  ])
})
