// The guide of transforms/README.md as an integrator follows it: its blocks type-check, run, and answer as printed.
import { cpSync, readFileSync, utimesSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parse } from 'jsonc-parser'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { createConfigFolder as makeConfigFolder } from '../../src/cli/scaffold/folder.ts'
import { ConfigSchema } from '../../src/gateway/config/keys.ts'
import { AgentResult, DeliverResult, WakeResult } from '../../src/core/model/transform.ts'
import { runCommand, runProcess } from './command.ts'
import { hookToken, makeFolder, toChildEnv, writeFiles } from './gateway.ts'
import { type Inside, readStore, startInside } from './inside.ts'

const project = resolve(import.meta.dirname, '../..')
const text = readFileSync(join(project, 'transforms/README.md'), 'utf8')
const root = 'hooks/transforms'

function readBlocks(language: string): string[] {
  return [...text.matchAll(new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``, 'g'))].map(([, block = '']) => block)
}

function readExample(language: string, mark: string): string {
  const found = readBlocks(language).find((candidate) => candidate.includes(mark))
  if (found === undefined) throw new Error(`the guide has no ${language} block with ${mark}`)
  return found
}

/** The ts blocks of the guide, by the names in their first lines. The block without a name imports types that a command writes. */
const modules = Object.fromEntries(
  readBlocks('ts').flatMap((code) => {
    const name = /^\/\/ (\S+)\n/.exec(code)?.[1]
    return name === undefined ? [] : [[name, code]]
  }),
)
// this module also imports the helper
modules['refund.ts'] = modules['order.ts']?.replaceAll(/order/gi, 'refund') ?? ''
const mapped = Object.keys(modules).filter((name) => !name.startsWith('lib/'))
const files = Object.fromEntries(Object.entries(modules).map(([name, code]) => [`${root}/${name}`, code]))
const toHook = (module: string) => module.replace(/\.ts$/, '')
const toMapping = (module: string) => ({ id: toHook(module), match: { path: toHook(module) }, transform: { module } })

/** A real package without dependencies, installed as `npm install --prefix` does it. */
function install(dir: string): void {
  const [, name = ''] =
    /^npm install --prefix ~\/\.hookloom\/hooks\/transforms (\S+)$/m.exec(readExample('sh', 'npm install')) ?? []
  cpSync(join(project, 'node_modules', name), join(dir, root, 'node_modules', name), { recursive: true })
}

/** Replaces ids, which differ in each run. */
const toShape = (json: string): unknown =>
  JSON.parse(json.replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'ID'))

let gateway: Inside

async function send(hook: string, payload: unknown): Promise<{ status: number; body: string }> {
  const answer = await fetch(`${gateway.url}/${hook}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${hookToken}`, 'content-type': 'application/json' },
    body: JSON.stringify(payload),
  })
  return { status: answer.status, body: await answer.text() }
}

/** The texts of the actions; without actions, the status of the answer and the result. */
async function ask(hook: string, payload: unknown): Promise<string[]> {
  const { status, body } = await send(hook, payload)
  const answer: { deliveryId?: string; status?: string; code?: string } = body === '' ? {} : JSON.parse(body)
  const word = answer.status ?? answer.code
  if (status !== 200 || word !== undefined) return [`${status}${word === undefined ? '' : ` ${word}`}`]
  const record = await readStore(gateway.dir, (reader) => reader.delivery(answer.deliveryId ?? ''))
  return (record?.jobs ?? []).map(({ planned }) => {
    if (planned.kind === 'wake') return planned.action.text
    return planned.kind === 'agent' ? planned.action.message : planned.kind
  })
}

const results = `const agent = { message: 'x' }
const made = {
  201: () => Array.from({ length: 201 }, () => agent),
  10001: () => Array.from({ length: 10_001 }, () => agent),
  empty: () => [],
  nothing: () => undefined,
  kept: () => ({}),
  large: () => ({ message: 'x'.repeat(255 * 1024) }),
  larger: () => ({ message: 'x'.repeat(256 * 1024) }),
  date: () => ({ message: new Date() }),
}
export default ({ payload }) => made[payload]()
`

beforeAll(async () => {
  const shown: { transform: { module: string } } = parse(readExample('jsonc', '"transform"'))
  const others = mapped.filter((module) => module !== shown.transform.module).map(toMapping)
  const tried = { ...toMapping('results.ts'), messageTemplate: 'as rendered' }
  gateway = await startInside({
    config: { hooks: { allowedSessionKeyPrefixes: ['hook:'], mappings: [shown, ...others, tried] } },
    files: { ...files, [`${root}/results.ts`]: results },
  })
})

const cases: [hook: string, payload: object, made: string[]][] = [
  ['build', { project: 'billing', branch: 'main', status: 'passed', url: 'https://ci.example/7' }, ['204']],
  ['release', { service: 'billing', version: '2.0' }, ['billing 2.0 was released.']],
  ['order', { id: 'A7', total: 1999, currency: 'eur' }, ['Order A7 for 19.99 EUR']],
]

describe('guide to transforms', () => {
  test('the modules of the guide have no type errors', async () => {
    const dir = makeFolder()
    await makeConfigFolder(dir)
    writeFiles(dir, files)
    install(dir)
    const tsc = join(project, 'node_modules/typescript/bin/tsc')
    const compiled = await runProcess(process.execPath, [tsc, '-p', join(dir, 'hooks')], { env: toChildEnv() })
    expect(compiled).toMatchObject({ code: 0, stdout: '' })
  })

  test('the first mapping and transform of the guide answer as printed', async () => {
    const curl = readExample('sh', 'curl').replace('http://127.0.0.1:8790/hooks', gateway.url)
    const ran = await runProcess('/bin/sh', ['-c', curl], { env: toChildEnv({ HOOKLOOM_TOKEN: hookToken }) })
    expect(toShape(ran.stdout)).toEqual(toShape(readExample('json', 'deliveryId')))
  })

  test.each(cases)('the module %s of the guide turns %j into %j', async (hook, payload, made) => {
    expect(await ask(hook, payload)).toEqual(made)
  })

  test('the tests of this file call every module of the guide', () => {
    const called = [...cases.map(([hook]) => hook), 'ask', 'refund', 'login', 'issue', 'failures', 'quiet']
    expect(mapped.map(toHook).toSorted()).toEqual(called.toSorted())
  })

  test('the module "issue" of the guide accepts an issue once', async () => {
    const payload = { issue: { id: '7', title: 'Disk full' } }
    expect(await ask('issue', payload)).toEqual(['Disk full'])
    expect(await ask('issue', payload)).toEqual(['204'])
    expect(await ask('issue', { issue: { id: '8', title: 'Disk full' } })).toEqual(['Disk full'])
  })

  test('the module "ask" of the guide sets the answer to its sender', async () => {
    const { status, body } = await send('ask', { text: 'Is billing up?' })
    expect([status, JSON.parse(body)]).toEqual([200, { response_type: 'in_channel', text: 'I am looking into it.' }])
  })

  test('a payload that does not fit the schema in the guide gets the printed answer', async () => {
    const [, payload = ''] = /The answer to `(.*)`:/.exec(text) ?? []
    expect(await send('release', JSON.parse(payload))).toEqual({
      status: 400,
      body: readExample('json', 'payload-invalid').trimEnd(),
    })
  })

  test('a save of the shared helper in the guide changes both modules that import it', async () => {
    const euros = modules['lib/money.ts']?.replace('.toUpperCase()', ".toUpperCase().replace('EUR', '€')") ?? ''
    writeFiles(gateway.dir, { [`${root}/lib/money.ts`]: euros })
    await expectMessage('order', { id: 'A7', total: 1999, currency: 'eur' }, 'Order A7 for 19.99 €')
    expect(await ask('refund', { id: 'A8', total: 500, currency: 'eur' })).toEqual(['refund A8 for 5.00 €'])
  })

  test('the package in the guide works after it is installed and the module is saved again', async () => {
    const outside = { user: 'ada', ip: '198.51.100.7' }
    expect(await ask('login', outside)).toEqual(['200 parked'])
    install(gateway.dir)
    utimesSync(join(gateway.dir, root, 'login.ts'), new Date(), new Date())
    await expectMessage('login', outside, 'ada logged in from 198.51.100.7')
    expect(await ask('login', { user: 'ada', ip: '203.0.113.9' })).toEqual(['204'])
  })

  test('the fixture in the guide passes, and fails for another transform', async () => {
    const dir = makeFolder()
    await makeConfigFolder(dir)
    const fixture = { [`${root}/build.fixtures/failed.json`]: readExample('json', '"branch": "main"') }
    writeFiles(dir, { [`${root}/build.ts`]: modules['build.ts'] ?? '', ...fixture })
    expect(await runCommand(['test', 'build'], { dir })).toMatchObject({ code: 0 })
    writeFiles(dir, { [`${root}/build.ts`]: modules['build.ts']?.replace('failed on', 'broke on') ?? '' })
    expect(await runCommand(['test', 'build'], { dir })).toMatchObject({ code: 70 })
  })
})

async function expectMessage(hook: string, payload: unknown, message: string): Promise<void> {
  await vi.waitUntil(async () => (await ask(hook, payload))[0] === message, { timeout: 60_000, interval: 50 })
}

describe('contract of the guide', () => {
  test.each([
    ['kept', ['as rendered']],
    ['empty', ['204']],
    ['201', Array.from({ length: 201 }, () => 'x')],
    ['10001', ['200 parked']],
    ['nothing', ['200 parked']],
    ['date', ['200 parked']],
    ['larger', ['200 parked']],
  ])('the result %j has the documented effect', async (result, made) => {
    expect(await ask('results', result)).toEqual(made)
  })

  test('a result just below the documented limit is accepted', async () => {
    const [message = ''] = await ask('results', 'large')
    expect(message).toHaveLength(255 * 1024)
    expect(text).toContain('| result, as JSON | 256 kB, 64 levels deep | |\n| objects in an array | 10,000 | |\n')
  })

  test('the guide prints the default values of the settings', () => {
    const { hooks } = ConfigSchema.parse({})
    for (const setting of ['timeoutMs', 'memoryMb'] as const) {
      expect(text).toMatch(
        new RegExp(`\\| ${hooks.transforms[setting]} \\w+ \\| \`hooks\\.transforms\\.${setting}\` \\|`),
      )
    }
    expect(text).toContain(`\`hooks.answerWithinMs\` (${hooks.answerWithinMs} ms)`)
    expect([hooks.transforms.env, hooks.onTransformError]).toEqual([[], 'park'])
  })

  test('the guide names every field of each kind of result', () => {
    const listed = (kind: string) => {
      const [, list = ''] = new RegExp(`Fields of ${kind}: ([^.]*)\\.`).exec(text) ?? []
      return [...list.matchAll(/`(\w+)`/g), ['', 'kind']].map(([, name = '']) => name)
    }
    // only the configuration can set trust
    const agent = Object.keys(AgentResult.shape).filter((name) => name !== 'allowUnsafeExternalContent')
    expect(listed('an agent run').toSorted()).toEqual(agent.toSorted())
    expect(listed('a wake').toSorted()).toEqual(Object.keys(WakeResult.shape).toSorted())
    expect(listed('a message').toSorted()).toEqual(Object.keys(DeliverResult.shape).toSorted())
  })
})
