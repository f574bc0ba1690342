// The package as a stranger gets it: a tarball in an empty folder, without this checkout and its libraries.
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { chatCompletions } from '../e2e/fakes/chat-completions.ts'
import { apiKey, replyWith, startFakeProvider } from '../e2e/fakes/provider.ts'
import { makeConfigDir, makeFolder, startGateway, toChildEnv } from '../e2e/gateway.ts'
import { root } from '../pages.ts'

const npm = (args: readonly string[], cwd: string) =>
  execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
const { version }: { version: string } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const hasRegistry = spawnSync('npm', ['ping', '--fetch-retries=0', '--fetch-timeout=10000']).status === 0

/** Packs a folder, and returns the tarball. `prepare` would build again. */
function pack(folder: string): string {
  const place = makeFolder()
  npm(['pack', '--ignore-scripts', '--pack-destination', place], folder)
  return join(place, `hookloom-${version}.tgz`)
}

test('two builds in different folders give the same tarball, byte for byte', () => {
  const copy = makeFolder()
  const names = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  })
  for (const name of names.trim().split('\n')) cpSync(join(root, name), join(copy, name), { errorOnExist: true })
  // links to the files: the bundler follows a link to the folder
  const links = spawnSync('cp', ['-al', join(root, 'node_modules'), copy])
  if (links.status !== 0) cpSync(join(root, 'node_modules'), join(copy, 'node_modules'), { recursive: true })
  npm(['run', 'build'], copy)
  const [one, other] = [root, copy].map((folder) => readFileSync(pack(folder)))
  expect(one?.equals(other ?? Buffer.of())).toBe(true)
})

describe.skipIf(!hasRegistry)('an install of the tarball in an empty folder (needs the registry of npm)', () => {
  let folder: string
  let tarball: string
  const main = () => join(folder, 'node_modules/hookloom/dist/main.js')

  beforeAll(() => {
    folder = makeFolder()
    tarball = pack(root)
    npm(['install', '--ignore-scripts', '--no-audit', '--no-fund', tarball], folder)
  })

  test('it has as many packages and megabytes as the README says, and at most 80 MB', () => {
    const { packages } = JSON.parse(readFileSync(join(folder, 'node_modules/.package-lock.json'), 'utf8'))
    const megabytes = Number.parseInt(execFileSync('du', ['-sm', join(folder, 'node_modules')], { encoding: 'utf8' }))
    const said = /has (\d+) packages and (\d+) MB/.exec(readFileSync(join(root, 'README.md'), 'utf8'))
    expect(Object.keys(packages).length).toBe(Number(said?.[1]))
    // the block size of the file system, and the esbuild of this system
    expect(Math.abs(megabytes - Number(said?.[2]))).toBeLessThanOrEqual(2)
    expect(megabytes).toBeLessThanOrEqual(80)
  })

  test.each(['20.19.0', '24'])(
    'with Node %s it loads a transform, stores, and calls a model, without a script of an install',
    { timeout: 300_000 },
    async (wanted) => {
      const place = makeFolder()
      npm(['install', '--no-audit', '--no-fund', `node@${wanted}`], place)
      const node = join(place, 'node_modules/node/bin/node')
      expect(execFileSync(node, ['--version'], { encoding: 'utf8' })).toMatch(new RegExp(`^v${wanted}`))
      const model = await startFakeProvider({ ...chatCompletions, model: 'llama3.3' })
      model.answer = replyWith('Billing is ', 'live.')
      const gateway = await startGateway({
        program: { node, main: main() },
        config: {
          agents: { defaults: { model: 'local/llama3.3' } },
          models: { providers: { local: { kind: 'openai-compatible', baseUrl: model.baseUrl, apiKey } } },
          hooks: { mappings: [{ match: { path: 'shop' }, result: 'text', transform: { module: 'shop.ts' } }] },
        },
        files: {
          'hooks/transforms/shop.ts': `import { defineTransform } from 'hookloom'
import { z } from 'zod'
export default defineTransform({ payload: z.object({ service: z.string() }), run: ({ payload }) => ({ message: payload.service }) })`,
        },
      })
      const headers = {
        authorization: `Bearer ${gateway.token}`,
        'content-type': 'application/json',
        prefer: 'wait=60',
      }
      const body = JSON.stringify({ service: 'billing' })
      const answer = await fetch(`${gateway.url}/shop`, { method: 'POST', headers, body })
      const { runId }: { runId: string } = JSON.parse(await answer.text())
      const run = await fetch(`${gateway.url}/runs/${runId}`, { headers })
      expect(await run.json()).toMatchObject({ state: 'done', reply: 'Billing is live.' })
      expect(await gateway.stop()).toBe(0)
    },
  )

  test('it packs itself again for an image, byte for byte', () => {
    const dir = makeConfigDir()
    const args = [main(), 'add', 'service', '--kind', 'docker', '--config-dir', dir]
    execFileSync(process.execPath, args, { env: toChildEnv(), stdio: 'ignore' })
    expect(readFileSync(join(dir, 'image/hookloom.tgz')).equals(readFileSync(tarball))).toBe(true)
  })
})
