// The README and the recipe of a laptop as a new user follows them: configuration, curl lines, answers, transform.
import { execFileSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'jsonc-parser'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { renderNewConfig } from '../../src/cli/scaffold/new-config.ts'
import { readBlock, root } from '../pages.ts'
import { chatCompletions } from './fakes/chat-completions.ts'
import { apiKey, replyWith, startFakeProvider } from './fakes/provider.ts'
import { startFakeTelegram } from './fakes/telegram.ts'
import { mainFile, makeFolder, startGateway, toChildEnv } from './gateway.ts'

const readExample = (language: string, mark: string) => readBlock('README.md', language, mark)
const readGuide = (language: string, mark: string) => readBlock('src/cli/scaffold/README.md', language, mark)

/** Replaces ids, which differ in each run. */
function toShape(json: string): unknown {
  return JSON.parse(json.replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'ID'))
}

describe('first screen of the README', () => {
  test('the curl lines of the README print the answer that it shows', async () => {
    const home = makeFolder()
    const dir = join(home, '.hookloom')
    const env = { ...toChildEnv(), HOME: home }
    execFileSync(process.execPath, [mainFile, 'init'], { env, stdio: 'ignore' })
    // the ports of the README may be in use on this machine
    const file = join(dir, 'hookloom.jsonc')
    const anyPort = readFileSync(file, 'utf8').replace(/8790|8791/g, '0')
    writeFileSync(file, anyPort)
    const gateway = await startGateway({ dir, command: 'dev' })
    const lines = readExample('sh', 'curl').replace('http://127.0.0.1:8790/hooks', gateway.url)
    const answer = execFileSync('sh', ['-c', lines], { env, encoding: 'utf8' })
    expect(toShape(answer)).toEqual(toShape(readExample('json', 'deliveryId')))
    await gateway.printed(/billing 1\.4\.2 went to production/)
    expect(await gateway.stop()).toBe(0)
  })

  test('the mapping in the README is the one that hookloom init writes', async () => {
    const shown: { hooks: { mappings: object[] } } = parse(readExample('jsonc', '"path": "deploy"'))
    const written: { hooks: { mappings: object[] } } = parse(renderNewConfig())
    expect(written.hooks.mappings[0]).toMatchObject(shown.hooks.mappings[0] ?? {})
    expect(written.hooks).toMatchObject({ ...shown.hooks, mappings: written.hooks.mappings })
  })

  test('the transform in the README and the mapping in the page about the pipeline run as printed', async () => {
    const secret = 'github-secret-0123456789'
    const mapping = parse(readBlock('src/core/mapping/README.md', 'jsonc', '"id": "review"'))
    const gateway = await startGateway({
      config: {
        hooks: {
          mappings: [mapping, { match: { path: 'pr' }, transform: { module: 'pr.ts' } }],
        },
      },
      env: { GITHUB_SECRET: secret },
      files: { 'hooks/transforms/pr.ts': readExample('ts', 'defineTransform') },
    })
    const toPayload = (draft: unknown) =>
      JSON.stringify({
        action: 'opened',
        sender: { login: 'ada' },
        pull_request: { id: 7, title: 'T', html_url: 'https://x.example/7', draft },
      })
    const send = (hook: string, draft: unknown) =>
      fetch(`${gateway.url}/${hook}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' },
        body: toPayload(draft),
      })
    const signed = await fetch(`${gateway.url}/${mapping.match.path}`, {
      method: 'POST',
      headers: {
        ...mapping.match.headers,
        'content-type': 'application/json',
        'x-github-event': mapping.match.event,
        'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(toPayload(false)).digest('hex')}`,
      },
      body: toPayload(false),
    })
    expect(await signed.json()).toMatchObject({ ok: true, sessionKey: 'hook:pr:7' })
    expect(await (await send('pr', false)).json()).toMatchObject({ ok: true, sessionKey: 'hook:pr:7' })
    expect((await send('pr', true)).status).toBe(204)
    const misfit = await send('pr', 'yes')
    expect([misfit.status, await misfit.json()]).toEqual([
      400,
      expect.objectContaining({ code: 'payload-invalid', error: expect.stringContaining('pull_request.draft') }),
    ])
    await gateway.stop()
  })

  test('behind a tunnel, a sender that signs the URL is proved, and an unknown client that guesses locks out nobody else', async () => {
    const secret = 'twilio-auth-token-0123456789'
    const recipe = parse(readBlock('src/cli/recipes/README.md', 'jsonc', 'trustedProxies'))
    const gateway = await startGateway({ config: recipe, env: { TWILIO_AUTH_TOKEN: secret } })
    const { publicUrl } = recipe.hooks.mappings[0].verify
    const signature = createHmac('sha1', secret).update(`${publicUrl}/hooks/twilioBodyhiFrom+1555`).digest('base64')
    const send = async (from: string, headers: object) => {
      const body = new URLSearchParams({ From: '+1555', Body: 'hi' })
      const answer = await fetch(`${gateway.url}/twilio`, {
        method: 'POST',
        body,
        headers: { 'x-forwarded-for': from, ...headers },
      })
      return answer.status
    }
    for (let guess = 0; guess < 20; guess++)
      expect(await send('203.0.113.9', { authorization: `Bearer guess-${guess}` })).toBe(401)
    expect(await send('203.0.113.9', { authorization: 'Bearer guess' })).toBe(429)
    expect(await send('198.51.100.7', { authorization: 'Bearer guess' })).toBe(401)
    expect(await send('198.51.100.7', { 'x-twilio-signature': signature })).toBe(200)
    await gateway.stop()
  })

  test('the two commands of the README name the tarball of this version, and a command that it has', () => {
    const { version, bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    expect(readExample('sh', 'npm install')).toBe(
      `npm install --global ./hookloom-${version}.tgz\n${Object.keys(bin)[0]} dev\n`,
    )
  })
})

describe('model and chat of the five minutes', () => {
  test(
    'with the configuration and the curl line of the page, the reply of the model arrives in the chat',
    { timeout: 120_000 },
    async () => {
      const botToken = '110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw'
      const model = await startFakeProvider({ ...chatCompletions, model: 'llama3.3' })
      model.answer = replyWith('Look at ', 'the billing tests first.')
      const telegram = await startFakeTelegram({ botToken, chats: [42] })
      const shown = parse(readGuide('jsonc', '"openai-compatible"').replace('http://127.0.0.1:11434/v1', model.baseUrl))
      shown.models.providers.local.apiKey = apiKey
      shown.channels.telegram.baseUrl = telegram.baseUrl
      const gateway = await startGateway({ config: shown, env: { TELEGRAM_BOT_TOKEN: botToken } })
      const lines = readGuide('sh', 'The build of main failed').replace('http://127.0.0.1:8790/hooks', gateway.url)
      const env = { ...toChildEnv(), HOOKLOOM_TOKEN: gateway.token }
      const answer: unknown = JSON.parse(execFileSync('sh', ['-c', lines], { env, encoding: 'utf8' }))
      expect(answer).toMatchObject({ ok: true, runId: expect.any(String) })
      await vi.waitUntil(() => telegram.posted.length > 0, { timeout: 60_000 })
      expect(telegram.posted).toMatchObject([{ chat_id: 42, text: 'Look at the billing tests first.' }])

      const runId = String(Reflect.get(Object(answer), 'runId'))
      const receipt = await vi.waitUntil(
        async () => {
          const asked = { headers: { authorization: `Bearer ${gateway.gatewayToken}` } }
          const body = z
            .object({ state: z.string() })
            .loose()
            .parse(await (await fetch(`${gateway.adminUrl}/api/runs/${runId}`, asked)).json())
          return body.state === 'done' ? body : undefined
        },
        { timeout: 60_000, interval: 100 },
      )
      expect(receipt).toMatchObject({
        kind: 'agent',
        posts: [{ channel: 'telegram', to: '42', state: 'sent', messageId: '1' }],
      })
      // a step is counted after it is recorded
      const metrics = await vi.waitFor(
        async () => {
          const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
          expect(text).toContain('hookloom_steps_total{step="deliver",outcome="done"} 1')
          return text
        },
        { timeout: 60_000 },
      )
      expect(metrics).toContain('hookloom_deliveries_total{outcome="accepted",hook="agent"} 1')
      expect(metrics).not.toContain('billing')
      expect(await gateway.stop()).toBe(0)
      await telegram.close()
      model.close()
    },
  )
})
