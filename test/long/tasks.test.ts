// A script solves the tasks of test/tasks with only the tools of `hookloom mcp`. The script knows the tasks; an agent would not.
import { expect, test } from 'vitest'
import { connectMcp, type McpClient } from '../e2e/mcp-client.ts'
import { hookToken } from '../e2e/gateway.ts'
import { readStore, startInside } from '../e2e/inside.ts'
import { gitlabSecret, type Stage, tasks } from '../tasks/tasks.ts'

const config = 'hookloom.jsonc'
const toTransformPath = (name: string) => `hooks/transforms/${name}`

/** Replaces a part of a file, and waits until the gateway serves the change. Publishes a change that is held back. */
async function save({ ask, call }: McpClient, file: string, replaces: string, text: string): Promise<void> {
  const { generation } = await ask<{ generation: string }>('health')
  await ask('write', { file, text, replaces })
  const isLive = async () => {
    const health = await ask<{ generation: string; held: boolean }>('health')
    if (health.held) {
      await ask('replay', { last: 20 })
      await call('publish')
    }
    return health.generation !== generation && !health.held
  }
  await expect.poll(isLive, { timeout: 60_000, interval: 200 }).toBe(true)
}

const addMapping = (mcp: McpClient, mapping: object) =>
  save(mcp, config, '"mappings": [', `"mappings": [${JSON.stringify(mapping)},`)

/** The solutions, by the name of the task. `ids`: the deliveries that came in before. */
const solutions: Readonly<Record<string, (mcp: McpClient, ids: readonly string[]) => Promise<void>>> = {
  'an unknown sender with its document': (mcp) =>
    addMapping(mcp, {
      id: 'weaver',
      match: { path: 'weaver' },
      messageTemplate: '{{service}} {{version}} by {{by.name}}',
      deliver: false,
    }),
  'a drift': async (mcp) => {
    // the gateway learns shapes shortly after the answer
    const readShapes = async () => (await mcp.call('shapes', { hook: 'shop' })).data
    await expect.poll(readShapes, { timeout: 60_000 }).toContain('order.amount')
    await save(mcp, config, 'sold for {{order.total}}', 'sold for {{order.amount}}')
  },
  'a dead delivery': async (mcp, [id = '']) => {
    const listDead = async () => (await mcp.call('list', { state: 'dead' })).data
    await expect.poll(listDead, { timeout: 60_000 }).toContain(id)
    expect((await mcp.call('show', { id })).data).toContain('no-such-program')
    await save(mcp, config, 'no-such-program', 'cat')
    await mcp.ask('retry', { id })
  },
  'a parked delivery with a TypeError': async (mcp, [, id = '']) => {
    expect((await mcp.call('show', { id })).data).toContain('TypeError')
    await save(mcp, toTransformPath('signup.ts'), 'payload.user.name', "(payload.user?.name ?? 'somebody')")
  },
  'a missing signature proof': async (mcp) => {
    const proof = '"verify": { "scheme": "gitlab-token", "secret": "${GITLAB_SECRET}" }'
    await save(mcp, config, '"id": "code",', `"id": "code", ${proof},`)
  },
  'a mapping that matches too much': async (mcp, [info = '']) => {
    const messageTemplate = 'alert {{title}}'
    const match = { path: 'alerts', payload: { severity: 'critical' } }
    const { tried } = await mcp.ask<{ tried: { deliveryId: string; matches: boolean }[] }>('try', {
      last: 50,
      hook: 'alerts',
      messageTemplate,
      match,
    })
    expect(tried.find(({ deliveryId }) => deliveryId === info)?.matches).toBe(false)
    await save(mcp, config, '"path": "alerts"', `"path": "alerts", "payload": ${JSON.stringify(match.payload)}`)
  },
  'an event that is sent twice': (mcp) =>
    save(mcp, toTransformPath('billing.ts'), '})\n', `, dedupe: { key: payload.eventId, for: '1d' } })\n`),
  'a template with a misspelt path': async (mcp) => {
    await expect.poll(async () => (await mcp.call('check')).data, { timeout: 60_000 }).toMatch(/titel[^]*title/)
    await save(mcp, config, 'pull_request.titel', 'pull_request.title')
  },
  'a transform from a recorded request, with its fixture': async (mcp, [id = '']) => {
    const { generation } = await mcp.ask<{ generation: string }>('health')
    await mcp.ask('new', { name: 'forms', from: id })
    const { data: fixture } = await mcp.call('read', { file: toTransformPath('forms.fixtures/first.json') })
    const { request } = JSON.parse(fixture)
    const expected = { decision: 'accept', actions: [{ message: 'red, blue' }] }
    await mcp.ask('write', {
      file: toTransformPath('forms.fixtures/first.json'),
      text: JSON.stringify({ request, expect: expected }),
    })
    await mcp.ask('write', {
      file: toTransformPath('forms.ts'),
      text: "export default ({ payload }) => ({ message: payload.answers.map(({ value }) => value).join(', ') })\n",
    })
    expect(await mcp.ask('test', { modules: ['forms'] })).toMatchObject({ ok: true })
    const isServed = async () => {
      const health = await mcp.ask<{ generation: string; held: boolean; degraded: boolean }>('health')
      if (health.held) await mcp.call('publish')
      const { compared } = await mcp.ask<{ compared: string }>('replay', { hook: 'forms' })
      // all files on disk are live, not only the first one
      return health.generation !== generation && !health.held && compared === 'recorded'
    }
    await expect.poll(isServed, { timeout: 60_000, interval: 200 }).toBe(true)
  },
  'a save that was held back': async (mcp) => {
    await mcp.ask('write', { file: config, replaces: 'Hello {{name}}', text: 'Welcome {{name}}' })
    const isHeld = async () => (await mcp.ask<{ held: boolean }>('health')).held
    await expect.poll(isHeld, { timeout: 60_000, interval: 200 }).toBe(true)
    expect(await mcp.ask('replay', { hook: 'greet' })).toMatchObject({
      compared: 'live',
      counts: { same: 0, changed: 2 },
    })
    await mcp.ask('publish')
  },
}

async function createStage() {
  const { dir, url } = await startInside({
    config: {
      runners: { gone: { kind: 'command', command: 'no-such-program' } },
      agents: {
        list: [
          { id: 'main', default: true },
          { id: 'reporter', runner: 'gone' },
        ],
      },
      hooks: { retain: 50, transforms: { hold: true }, mappings: tasks.flatMap(({ mapping }) => mapping ?? []) },
    },
    files: Object.assign({ '.env': `GITLAB_SECRET=${gitlabSecret}\n` }, ...tasks.map(({ files }) => files ?? {})),
  })
  const stage: Stage = {
    async send(hook, payload, headers = { authorization: `Bearer ${hookToken}` }) {
      const answer = await fetch(`${url}/${hook}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(payload),
      })
      const text = await answer.text()
      const { deliveryId = '' } = text === '' ? {} : JSON.parse(text)
      return { status: answer.status, deliveryId }
    },
    async read(deliveryId) {
      const found = await readStore(dir, (store) => store.delivery(deliveryId))
      const planned = found?.jobs[0]?.planned
      const message = planned?.kind === 'agent' ? planned.action.message : undefined
      return { state: found?.state ?? 'unknown', message, run: found?.jobs[0]?.state }
    },
  }
  return { dir, stage }
}

test(
  'a script solves ten tasks with the MCP tools alone, and the check of each task fails beforehand',
  { timeout: 300_000 },
  async () => {
    const { dir, stage } = await createStage()
    const mcp = await connectMcp({ dir, args: ['--write'] })
    expect(tasks).toHaveLength(10)
    const all = new Map<string, readonly string[]>()
    for (const { name, before, check } of tasks) {
      const ids = (await before?.(stage)) ?? []
      all.set(name, ids)
      expect([
        name,
        await check(stage, ids).then(
          () => 'solved',
          () => 'open',
        ),
      ]).toEqual([name, 'open'])
    }
    for (const { name, check } of tasks) {
      const ids = all.get(name) ?? []
      await solutions[name]?.(mcp, ids)
      await expect
        .poll(() => check(stage, ids).then(() => 'solved', String), { timeout: 60_000, message: name })
        .toBe('solved')
    }
    for (const { name, check } of tasks)
      await check(stage, all.get(name) ?? []).catch((error: unknown) => expect.fail(`${name}: ${String(error)}`))
  },
)
