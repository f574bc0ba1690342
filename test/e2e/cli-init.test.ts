import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runBuilt, runCommand, runProcess } from './command.ts'
import { makeConfigDir, makeFolder, post, startGateway, toChildEnv, writeFiles } from './gateway.ts'

describe('hookloom init', () => {
  test('hookloom init makes a directory that check accepts, with a configuration and a .env that only the owner can read', async () => {
    const dir = join(makeFolder(), 'home')
    const made = await runCommand(['init'], { dir })
    expect(made).toMatchObject({ code: 0, stderr: '' })
    for (const file of ['hookloom.jsonc', '.env']) expect(statSync(join(dir, file)).mode & 0o777).toBe(0o600)
    const checked = await runCommand(['check', '--json'], { dir })
    expect(checked.code).toBe(0)
    expect(checked.json().filter(({ ok }) => ok !== true)).toEqual([])
    expect(checked.json().map(({ name }) => name)).toContain('transform github-pull-request.ts')
  })

  test('hookloom init makes two new tokens and prints only the hook token', async () => {
    const [one, other] = [makeFolder(), makeFolder()]
    const { stdout } = await runCommand(['init'], { dir: one })
    await runCommand(['init'], { dir: other })
    const tokens = [...readTokens(one), ...readTokens(other)]
    expect(new Set(tokens).size).toBe(4)
    for (const token of tokens) expect(Buffer.from(token, 'base64url')).toHaveLength(32)
    expect(stdout).toContain(tokens[0])
    expect(stdout).not.toContain(tokens[1])
  })

  test('a second hookloom init changes nothing, says so, and exits 78', async () => {
    const dir = makeFolder()
    await runCommand(['init'], { dir })
    const before = readAll(dir)
    const again = await runCommand(['init'], { dir })
    expect(again.code).toBe(78)
    expect(again.stderr).toContain('Nothing was overwritten or changed')
    expect(again.stdout).not.toContain('created')
    expect(readAll(dir)).toEqual(before)
  })

  test('hookloom init adds missing files, and does not overwrite existing ones', async () => {
    const dir = makeFolder()
    await runCommand(['init'], { dir })
    writeFiles(dir, { 'hooks/transforms/github-pull-request.ts': '// mine\n' })
    rmSync(join(dir, 'hooks/tsconfig.json'))
    const { code, stdout } = await runCommand(['init'], { dir })
    expect(code).toBe(0)
    expect(stdout).toMatch(/created\s+hooks\/tsconfig.json/)
    expect(stdout).toMatch(/exists\s+hooks\/transforms\/github-pull-request.ts/)
    expect(readFileSync(join(dir, 'hooks/transforms/github-pull-request.ts'), 'utf8')).toBe('// mine\n')
  })

  test('hookloom init keeps the variables of an existing .env, and adds those that the configuration reads', async () => {
    const dir = makeFolder()
    writeFiles(dir, { '.env': 'MINE=1\nHOOKLOOM_TOKEN=chosen-by-me-0123456789abcdef' })
    await runCommand(['init'], { dir })
    const text = readFileSync(join(dir, '.env'), 'utf8')
    expect(text).toMatch(/^MINE=1\nHOOKLOOM_TOKEN=chosen-by-me-0123456789abcdef\nHOOKLOOM_GATEWAY_TOKEN=\S{43}\n$/)
  })

  test('an editor resolves hookloom, zod and Node in every file below hooks', async () => {
    const dir = makeFolder()
    await runCommand(['init'], { dir })
    const folder = join(dir, 'hooks')
    writeFiles(dir, {
      'hooks/transforms/rich.ts': `import { createHash } from 'node:crypto'
        import { defineTransform } from 'hookloom'
        import { z } from 'zod'
        export default defineTransform({
          payload: z.object({ name: z.string(), url: z.string() }),
          async run({ payload }) {
            const page = await fetch(new URL(payload.url))
            console.log(createHash('sha256').update(Buffer.from(payload.name)).digest('hex'), process.env['KEY'])
            return { message: await page.text() }
          },
        })`,
      'hooks/verifiers/acme.ts': `import { timingSafeEqual } from 'node:crypto'
        import { defineVerifier } from 'hookloom'
        export default defineVerifier({
          scheme: 'acme',
          headers: ['x-acme'],
          verify: ({ rawBody }, { secrets }) =>
            secrets.some((secret) => timingSafeEqual(rawBody, Buffer.from(secret)))
              ? { ok: true }
              : { ok: false, fault: 'sender', reason: 'no' },
        })`,
      'hooks/presets/weaver.ts': `import { definePreset } from 'hookloom'
        import * as z from 'zod/v4'
        export default definePreset({
          name: 'weaver',
          title: 'Deployments.',
          options: z.strictObject({ path: z.string() }),
          build: ({ path }) => ({ mappings: [{ match: { path } }] }),
        })`,
    })
    const tsc = resolve(import.meta.dirname, '../../node_modules/typescript/bin/tsc')
    writeFileSync(
      join(folder, 'transforms/wrong.ts'),
      `import { defineTransform } from 'hookloom'\nexport default defineTransform(() => ({ message: 1 }))\n`,
    )
    const { code, stdout } = await runProcess(process.execPath, [tsc, '-p', folder], { env: toChildEnv() })
    expect(code).not.toBe(0)
    // the output has this one error, and indented lines that explain it
    const errors = stdout.split('\n').filter((line) => /^\S/.test(line))
    expect(errors).toEqual([expect.stringMatching(/wrong\.ts\(2,\d+\): error TS/)])
  })
})

describe('hookloom dev', () => {
  test('hookloom dev prints a curl line and a send line that work as printed', async () => {
    const dir = await initOnAnyPort()
    const gateway = await startGateway({ dir, command: 'dev' })
    await gateway.printed(/Ctrl-C/)
    const [, curl = 'false'] = /^\s+(curl .*)$/m.exec(gateway.output()) ?? []
    const called = await runProcess('/bin/sh', ['-c', curl], { env: toChildEnv() })
    expect(called.json()).toMatchObject([{ ok: true, sessionKey: 'hook:inbox' }])
    const [, send = 'false'] = /^\s+(node .* send .*)$/m.exec(gateway.output()) ?? []
    const sent = await runProcess('/bin/sh', ['-c', send], { env: toChildEnv() })
    expect(sent).toMatchObject({ code: 0, stderr: '' })
    expect(sent.stdout).toMatch(/^200 .*"sessionKey":"hook:pr:/)
    await gateway.printed(/reply of main \(Hello\)/)
    expect(await gateway.stop()).toBe(0)
  })

  test('hookloom dev creates a missing directory, and serves on the default port', async (context) => {
    if (!(await isFree(8790)) || !(await isFree(8791))) context.skip('port 8790 or 8791 is in use on this machine')
    const dir = join(makeFolder(), 'not', 'there', 'yet')
    const gateway = await startGateway({ dir, command: 'dev' })
    expect(gateway.url).toBe('http://127.0.0.1:8790/hooks')
    expect(gateway.output()).toContain(gateway.token)
    expect(gateway.output()).not.toContain(gateway.gatewayToken)
    expect(await post(gateway, 'wake', { text: 'hello' })).toMatchObject({ ok: true })
    expect(await gateway.stop()).toBe(0)
  })

  test('hookloom dev names both ports and their options if one of them is in use, and exits 78', async () => {
    const taken = createServer()
    await new Promise<void>((listening) => taken.listen(0, '127.0.0.1', listening))
    const address = taken.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const { code, stderr } = await runBuilt(['dev'], { dir: makeConfigDir({ config: { server: { port } } }) })
    const admin = await runBuilt(['dev'], { dir: makeConfigDir({ config: { server: { adminPort: port } } }) })
    taken.close()
    const both = (hooks: number, own: number) =>
      `127.0.0.1:${port}: the port is in use. The gateway needs the ports ${hooks} (--port, or server.port) and ${own} (--admin-port, or server.adminPort).`
    expect(stderr).toContain(both(port, 0))
    expect(admin.stderr).toContain(both(0, port))
    expect([code, admin.code]).toEqual([78, 78])
  })

  test('hookloom dev prints that the hooks are off, instead of a curl line that would get 404', async () => {
    const gateway = await startGateway({ config: { hooks: { enabled: false } }, command: 'dev' })
    await gateway.printed(/hooks\.enabled is false/)
    expect(gateway.output()).not.toContain('curl')
    await gateway.stop()
  })

  test('hookloom dev shows a problem of the operator in the answer, and hookloom start does not', async () => {
    const options = {
      config: { hooks: { mappings: [{ match: { path: 'broken' }, transform: { module: 'broken.ts' } }] } },
      files: { 'hooks/transforms/broken.ts': 'export default () => {\n  throw new Error("no")\n}\n' },
    }
    const answers: unknown[] = []
    for (const command of ['dev', 'start'] as const) {
      const gateway = await startGateway({ ...options, command })
      answers.push(await post(gateway, 'broken', {}))
      await gateway.stop()
    }
    expect(answers[0]).toMatchObject({ status: 'parked', problem: { code: 'transform-failed' } })
    expect(answers[1]).not.toHaveProperty('problem')
  })
})

function readTokens(dir: string): string[] {
  const text = readFileSync(join(dir, '.env'), 'utf8')
  return [...text.matchAll(/^HOOKLOOM_(?:GATEWAY_)?TOKEN=(.*)$/gm)].map(([, token = '']) => token)
}

function readAll(dir: string): Record<string, string> {
  const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const paths = files.map((entry) => join(entry.parentPath, entry.name))
  return Object.fromEntries(paths.map((path) => [path, readFileSync(path, 'utf8')]))
}

async function initOnAnyPort(): Promise<string> {
  const dir = makeFolder()
  await runCommand(['init'], { dir })
  const file = join(dir, 'hookloom.jsonc')
  writeFileSync(file, readFileSync(file, 'utf8').replace(/8790|8791/g, '0'))
  return dir
}

function isFree(port: number): Promise<boolean> {
  const server = createServer()
  return new Promise((free) => {
    server.once('error', () => free(false))
    server.listen(port, '127.0.0.1', () => server.close(() => free(true)))
  })
}
