// The author's tools: a new transform, its fixtures, a fixture from a delivery, and the steps of the guide as printed.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { loadConfig } from '../../src/gateway/config/config.ts'
import { readBlocks } from '../pages.ts'
import { runBuilt, runCommand } from './command.ts'
import {
  type Gateway,
  hookToken,
  mainFile,
  makeConfigDir,
  makeFolder,
  post,
  startGateway,
  toChildEnv,
  writeFiles,
} from './gateway.ts'
import { startInside } from './inside.ts'

const buildTransform = (text: string) => `export default ({ payload }) => ({ message: \`${text} \${payload.name}\` })\n`
const toFixture = (message: string, payload: object = { name: 'Ada' }) =>
  `${JSON.stringify({ request: { path: 'x', payload }, expect: { decision: 'accept', actions: [{ message }] } })}\n`
const toMapping = (module: string, more: object = {}) => ({
  hooks: { mappings: [{ id: 'x', match: { path: 'x' }, transform: { module }, ...more }] },
})
const root = 'hooks/transforms'

describe('hookloom new', () => {
  test('hookloom new writes a module, a fixture that passes and a mapping, and keeps every comment', async () => {
    const dir = makeConfigDir()
    writeFileSync(
      join(dir, 'hookloom.jsonc'),
      '{\n  // mine\n  "hooks": { "enabled": true, "token": "hook-secret-0123456789", "mappings": [] },\n}\n',
    )
    const made = await runCommand(['new', 'greet'], { dir })
    expect([made.code, made.stderr]).toEqual([0, ''])
    const text = readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')
    expect(text).toContain('// mine')
    expect(loadConfig({ dir, env: {} }).config.hooks.mappings).toMatchObject([
      { id: 'greet', match: { path: 'greet' }, transform: { module: 'greet.ts' } },
    ])
    expect(readdirSync(join(dir, root)).toSorted()).toEqual(['greet.fixtures', 'greet.ts'])
    expect(existsSync(join(dir, 'hooks/tsconfig.json'))).toBe(true)
    expect((await runCommand(['test'], { dir })).stdout).toBe('✓ greet.ts/first.json\n\n1 passed, 0 failed\n')
    expect((await runCommand(['check'], { dir })).code).toBe(0)
  })

  test('hookloom new overwrites nothing, and adds no second mapping of a module', async () => {
    const dir = makeConfigDir({ config: toMapping('greet.ts'), files: { [`${root}/taken.ts`]: '// mine' } })
    const before = readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')
    expect((await runCommand(['new', 'taken'], { dir })).code).toBe(78)
    expect(readFileSync(join(dir, root, 'taken.ts'), 'utf8')).toBe('// mine')
    expect(existsSync(join(dir, root, 'taken.fixtures'))).toBe(false)
    const made = await runCommand(['new', 'greet'], { dir })
    expect([made.code, made.stdout]).toEqual([0, expect.stringContaining('POST /hooks/x calls it.')])
    expect(readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')).toBe(before)
    expect((await runCommand(['test', 'greet'], { dir })).code).toBe(0)
  })

  test.each(['../up', 'a/b', 'a.ts', '.hidden', 'wake', 'Agent', '1st', ''])(
    'hookloom new refuses the name %j',
    async (name) => {
      const dir = makeConfigDir()
      expect((await runCommand(['new', name], { dir })).code).toBe(64)
      expect(existsSync(join(dir, 'hooks'))).toBe(false)
    },
  )

  test.each(['github', 'gmail', 'calcom', 'twilio'])(
    'hookloom new --from %s takes a request of that sender, and its fixture passes',
    async (from) => {
      const dir = makeConfigDir()
      expect(await runCommand(['new', 'mine', '--from', from], { dir })).toMatchObject({ code: 0, stderr: '' })
      const tested = await runCommand(['test', 'mine'], { dir })
      expect([tested.code, tested.stdout]).toEqual([0, expect.stringContaining('1 passed, 0 failed')])
      const { request, expect: expected } = JSON.parse(
        readFileSync(join(dir, root, 'mine.fixtures/first.json'), 'utf8'),
      )
      expect([request.path, expected.decision]).toEqual(['mine', 'accept'])
      expect(JSON.stringify(request)).not.toContain('Ada"')
    },
  )

  test('for a sender that signs, hookloom new --from adds verify and a secret in .env, which hookloom check calls a placeholder', async () => {
    const dir = makeConfigDir()
    const { stdout } = await runCommand(['new', 'mine', '--from', 'github'], { dir })
    expect(stdout).toContain('GITHUB_WEBHOOK_SECRET is a placeholder in .env')
    expect(loadConfig({ dir, env: {} }).config.hooks.mappings.at(-1)).toMatchObject({
      id: 'mine',
      verify: { scheme: 'github', secret: expect.stringMatching(/^[\da-f]{64}$/) },
    })
    expect(readFileSync(join(dir, '.env'), 'utf8')).toMatch(/^GITHUB_WEBHOOK_SECRET="?[\da-f]{64}"?$/m)
    const checked = await runCommand(['check'], { dir })
    expect([checked.code, checked.stdout]).toEqual([0, expect.stringContaining('verify.secret is a placeholder')])
    const again = await runCommand(['new', 'other', '--from', 'github'], { dir })
    expect(again.stdout).toContain('GITHUB_WEBHOOK_SECRET is set already')
    expect(readFileSync(join(dir, '.env'), 'utf8').match(/GITHUB_WEBHOOK_SECRET/g)).toHaveLength(1)
  })

  test('hookloom new --from with an unknown sender lists the known ones', async () => {
    const dir = makeConfigDir()
    const { code, stderr } = await runCommand(['new', 'mine', '--from', 'nobody-at-all'], { dir })
    expect([code, stderr]).toEqual([64, expect.stringMatching(/calcom.*github.*stripe.*--from last\.$/m)])
    expect(existsSync(join(dir, 'hooks'))).toBe(false)
  })
})

describe('hookloom test', () => {
  const files = {
    [`${root}/x.ts`]: buildTransform('Hello'),
    [`${root}/x.fixtures/bad.json`]: toFixture('Bye Ada'),
    [`${root}/x.fixtures/good.json`]: toFixture('Hello Ada'),
    [`${root}/free.ts`]: buildTransform('Free'),
    [`${root}/free.fixtures/one.json`]: toFixture('Free Ada'),
    [`${root}/broken.ts`]: 'export default () => {\n  retrun {}\n}\n',
  }

  test('hookloom test reports each fixture with its differences, and exits 70 if one fails', async () => {
    const dir = makeConfigDir({ config: toMapping('x.ts'), files })
    const { code, stdout } = await runCommand(['test'], { dir })
    expect([code, stdout]).toEqual([
      70,
      `✗ x.ts/bad.json\n    actions[0].message: expected "Bye Ada", got "Hello Ada"\n✓ x.ts/good.json\n\n1 passed, 1 failed\n`,
    ])
    const { json } = await runCommand(['test', '--json'], { dir })
    const diff = ['actions[0].message: expected "Bye Ada", got "Hello Ada"']
    expect(json()).toEqual([
      { module: 'x.ts', fixture: 'bad.json', ok: false, updated: false, diff, problem: null, log: [] },
      { module: 'x.ts', fixture: 'good.json', ok: true, updated: false, diff: [], problem: null, log: [] },
    ])
  })

  test('a fixture that fails shows the log of its transform', async () => {
    const logs = 'export default ({ payload }, { log }) => {\n  log("told of Ada")\n  return { message: "Hello" }\n}\n'
    const dir = makeConfigDir({ config: toMapping('x.ts'), files: { ...files, [`${root}/x.ts`]: logs } })
    const { stdout } = await runCommand(['test', 'x'], { dir })
    expect(stdout).toContain('got "Hello"\n    Log\n      told of Ada\n')
    const { json } = await runCommand(['test', 'x', '--json'], { dir })
    expect(json()[0]).toMatchObject({ fixture: 'bad.json', log: ['told of Ada'] })
  })

  test('hookloom test runs the given modules, by name or path, even without a mapping', async () => {
    const dir = makeConfigDir({ config: toMapping('x.ts'), files })
    const free = { code: 0, stdout: '✓ free.ts/one.json\n\n1 passed, 0 failed\n' }
    expect(await runCommand(['test', 'free'], { dir })).toMatchObject(free)
    expect(await runBuilt(['test', `${root}/free.ts`], { dir, cwd: dir })).toMatchObject(free)
    expect(await runCommand(['test', 'fre'], { dir })).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('fre'),
    })
    expect((await runCommand(['test', '../../hookloom.jsonc'], { dir })).code).toBe(64)
  })

  test('hookloom test shows the line of a module that does not load, and runs the others', async () => {
    const dir = makeConfigDir({ config: toMapping('x.ts'), files })
    const { code, stdout } = await runCommand(['test', 'broken', 'free'], { dir })
    expect(code).toBe(70)
    expect(stdout).toMatch(/broken\.ts:2/)
    expect(stdout).toContain('1 passed, 0 failed, 1 module does not load')
  })

  test('hookloom test -u updates only the fixtures that fail', async () => {
    const dir = makeConfigDir({ config: toMapping('x.ts'), files })
    const read = (name: string) => readFileSync(join(dir, root, 'x.fixtures', name), 'utf8')
    const before = { good: read('good.json'), bad: read('bad.json') }
    expect((await runCommand(['test', '-u'], { dir })).stdout).toContain('1 passed, 0 failed, 1 updated')
    expect(read('good.json')).toBe(before.good)
    expect(JSON.parse(read('bad.json'))).toEqual(JSON.parse(before.bad.replace('Bye', 'Hello')))
    expect(await runCommand(['test'], { dir })).toMatchObject({ code: 0 })
  })

  test('hookloom test -u does not accept an exception as the expected result', async () => {
    const dir = makeConfigDir({ config: toMapping('x.ts'), files })
    writeFiles(dir, { [`${root}/x.ts`]: 'export default () => { throw new TypeError("never") }\n' })
    expect(await runCommand(['test', '-u'], { dir })).toMatchObject({
      code: 70,
      stdout: expect.stringContaining('0 passed, 2 failed'),
    })
    expect(readFileSync(join(dir, root, 'x.fixtures/good.json'), 'utf8')).toBe(files[`${root}/x.fixtures/good.json`])
  })

  test('hookloom test --watch runs only the modules that a save touches, until Ctrl-C', async () => {
    const helped = `import { word } from './word.ts'\nexport default ({ payload }) => ({ message: word + payload.name })\n`
    const hooks = { mappings: ['x', 'y'].map((id) => ({ id, match: { path: id }, transform: { module: `${id}.ts` } })) }
    const dir = makeConfigDir({
      config: { hooks },
      files: {
        ...files,
        [`${root}/y.ts`]: helped,
        [`${root}/word.ts`]: `export const word = 'Hey '\n`,
        [`${root}/y.fixtures/one.json`]: toFixture('Hey Ada'),
      },
    })
    const watching = startWatching(dir)
    await watching.printed(/Waiting for changes/)
    expect(watching.take()).toContain('2 passed, 1 failed')
    writeFiles(dir, { [`${root}/word.ts`]: `export const word = 'Ho '\n` })
    await watching.printed(/failed\n/)
    expect(watching.take()).toMatch(/Saved word\.ts\n✗ y\.ts\/one\.json\n.*got "Ho Ada"\n\n0 passed, 1 failed\n/)
    writeFiles(dir, { [`${root}/x.fixtures/bad.json`]: toFixture('Hello Ada') })
    await watching.printed(/failed\n/)
    expect(watching.take()).toMatch(/bad\.json\n✓ x\.ts\/bad\.json\n✓ x\.ts\/good\.json\n\n2 passed, 0 failed\n/)
    expect(await watching.stop()).toBe(0)
  })
})

describe('hookloom capture', () => {
  const secretHeaders = { 'x-acme-signature': 'sig-1', 'x-api-key': 'key-1', 'x-acme-time': '12' }
  const payload = {
    name: 'Ada',
    auth: { access_token: 'tok-1', token_type: 'bearer' },
    note: 'a long text '.repeat(40),
  }
  const find = (dir: string, name: string) => JSON.parse(readFileSync(join(dir, root, 'x.fixtures', name), 'utf8'))

  test('hookloom capture makes a fixture of a kept delivery, without its secrets, and the fixture passes', async () => {
    const { dir, url } = await startInside({
      config: toMapping('x.ts', { retain: true }),
      files: { [`${root}/x.ts`]: buildTransform('Hello') },
    })
    const token = hookToken
    const mine = { ...payload, deep: [{ clientSecret: 'sec-1' }, `see ${token}`] }
    const { deliveryId } = await post({ url, token }, 'x', mine, { ...secretHeaders, cookie: 'session=cook-1' })
    const { code, json } = await runCommand(['capture', String(deliveryId), '--name', 'real', '--json'], { dir })
    expect([code, json()]).toMatchObject([0, [{ module: 'x.ts', deliveryId, decision: 'accept', note: null }]])
    const { request, expect: expected } = find(dir, 'real.json')
    expect(request.headers).toMatchObject({ 'x-acme-time': '12', 'content-type': 'application/json' })
    expect(request.payload).toEqual({
      ...payload,
      auth: { access_token: '[removed]', token_type: 'bearer' },
      deep: [{ clientSecret: '[removed]' }, 'see [removed]'],
    })
    expect(JSON.stringify(request)).not.toMatch(/sig-1|key-1|tok-1|sec-1|cook-1|hook-secret/)
    expect(expected).toEqual({ decision: 'accept', actions: [{ kind: 'agent', message: 'Hello Ada' }] })
    expect((await runCommand(['test'], { dir })).code).toBe(0)
    expect((await runCommand(['capture', String(deliveryId), '--name', 'real'], { dir })).code).toBe(65)
  })

  test('the fixture of a parked delivery fails until the code is corrected', async () => {
    const { dir, url } = await startInside({
      config: toMapping('x.ts'),
      files: { [`${root}/x.ts`]: 'export default () => { throw new TypeError("never") }\n' },
    })
    const token = hookToken
    const { deliveryId, status } = await post({ url, token }, 'x', payload)
    expect(status).toBe('parked')
    const { code, stdout } = await runCommand(['capture', String(deliveryId), '--name', 'real'], { dir })
    expect([code, stdout]).toEqual([0, expect.stringContaining('fails until the code is fixed')])
    expect(find(dir, 'real.json').expect).toEqual({ decision: 'accept' })
    expect((await runCommand(['test'], { dir })).code).toBe(70)
    writeFiles(dir, { [`${root}/x.ts`]: buildTransform('Hello') })
    expect((await runCommand(['test'], { dir })).code).toBe(0)
  })

  test('hookloom capture explains how to keep payloads if the payload of the delivery was not kept, and refuses an unknown id', async () => {
    const { dir, url } = await startInside({
      config: toMapping('x.ts'),
      files: { [`${root}/x.ts`]: buildTransform('Hello') },
    })
    const token = hookToken
    const { deliveryId } = await post({ url, token }, 'x', payload)
    const gone = await runCommand(['capture', String(deliveryId)], { dir })
    expect([gone.code, gone.stderr]).toEqual([65, expect.stringContaining('Set "retain": 100 in the mapping "x"')])
    expect((await runCommand(['capture', 'nobody'], { dir })).code).toBe(65)
    expect(existsSync(join(dir, root, 'x.fixtures'))).toBe(false)
  })
})

describe('the page Five minutes', () => {
  test('each step from the first request to a tested transform works as printed', async () => {
    const home = makeFolder()
    const dir = join(home, '.hookloom')
    const env = { ...toChildEnv(), HOME: home }
    const runShell = (lines: string, url: string, refusal = '') => {
      const script = lines
        .replaceAll('http://127.0.0.1:8790/hooks', url)
        .replaceAll(/^hookloom /gm, '"$NODE" "$MAIN" ')
        .replaceAll('/tmp/order.sh', `${home}/order.sh`)
        .replaceAll('8530c11b', refusal)
      const ran = spawnSync('sh', ['-c', script], {
        env: { ...env, NODE: process.execPath, MAIN: mainFile },
        encoding: 'utf8',
      })
      expect(ran.stderr).toBe('')
      return ran.stdout
    }
    runShell('hookloom init', '')
    const file = join(dir, 'hookloom.jsonc')
    writeFileSync(file, readFileSync(file, 'utf8').replace(/8790|8791/g, '0'))
    const gateway = await startGateway({ dir, command: 'dev' })
    const module = join(dir, root, 'shop.ts')
    let stdout = ''
    let heard = gateway.output().length
    const walk = readBlocks('src/cli/scaffold/README.md').filter(({ section }) => /^[123]\. /.test(section))
    expect(walk.length).toBeGreaterThan(12)
    for (const { language, text: block } of walk) {
      if (language === 'sh') {
        // the first shell names the refusal
        const [, refusal] = /"hookloom show (\w+)" explains it/.exec(gateway.output()) ?? []
        if (block.includes('8530c11b')) await gateway.printed(/"hookloom show \w+" explains it/)
        heard = gateway.output().length
        stdout = runShell(block, gateway.url, refusal ?? /show (\w+)" explains/.exec(gateway.output())?.[1])
      } else if (language === 'ts') {
        heard = gateway.output().length
        writeFileSync(module, readFileSync(module, 'utf8').replace(/^ {2}return \{.*\n/m, block))
      } else if (language === 'jsonc') {
        expect(stdout.replaceAll(/\n {2}/g, '\n')).toContain(block.trim())
        heard = gateway.output().length
        const start = '"mappings": [\n'
        writeFileSync(
          file,
          readFileSync(file, 'utf8').replace(start, () => `${start}${block.trim()},\n`),
        )
        stdout = ''
      } else if (language === 'json') {
        expect(removeIds(stdout.trim())).toBe(removeIds(block.trim()))
        stdout = ''
      } else if (stdout !== '') {
        expect(normalizeOutput(stdout, home)).toBe(block)
        stdout = ''
      } else {
        for (const line of block.split('\n').filter((each) => each !== '')) await waitForLine(gateway, heard, line)
      }
    }
    const replayed = runShell('hookloom replay --last 2', '')
    expect(replayed).toContain('+ Order 7 is paid.')
    expect(await gateway.stop()).toBe(0)
  })
})

function removeIds(text: string): string {
  return text.replaceAll(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, 'ID')
}

/** The output as an installed command prints it in the home directory of Ada. */
function normalizeOutput(stdout: string, home: string): string {
  const script = /^( +)node \S+main\.js /gm
  return stdout.replaceAll(home, '/home/ada').replaceAll(script, '$1hookloom ')
}

/** Waits for a line that the gateway prints after this position. Any number of milliseconds matches. */
function waitForLine(gateway: Gateway, after: number, line: string): Promise<void> {
  const pattern = line.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/\d+ ms/, '\\d+ ms')
  return gateway.printed(new RegExp(`^[^]{${after},}${pattern}`))
}

/** Runs `hookloom test --watch` as a child process. `take` returns the output since the last call. */
function startWatching(dir: string) {
  const child = spawn(process.execPath, [mainFile, 'test', '--watch', '--config-dir', dir], { env: toChildEnv() })
  onTestFinished(() => void child.kill('SIGKILL'))
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  const closed = new Promise<number | null>((done) => child.once('close', done))
  return {
    take() {
      const taken = text
      text = ''
      return taken
    },
    printed: (pattern: RegExp) =>
      new Promise<void>((done, failed) => {
        const look = () => {
          if (pattern.test(text)) done()
        }
        child.stdout.on('data', look)
        void closed.then(() => failed(new Error(`it ended before it printed ${String(pattern)}:\n${text}`)))
        look()
      }),
    stop() {
      child.kill('SIGINT')
      return closed
    },
  }
}
