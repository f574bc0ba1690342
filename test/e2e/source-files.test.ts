// Files of the items of a source, in the workspace of the runs: by the plugin of an outsider.
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { runCommand } from './command.ts'
import { fileAgent, readJobs, readShown as readFilesShown } from './file-agent.ts'
import { type Loopback, startLoopback } from './fakes/loopback.ts'
import { gatewayToken, startGateway } from './gateway.ts'
import { type Inside, readStore, startInside } from './inside.ts'
import { post } from './wire.ts'

const plugin = 'hooks/plugins/pigeon.ts'

/** A source whose items have files, which it reads by their ref. */
const source = `import { defineSource } from 'hookloom/define'
import { z } from 'zod'

export default defineSource({
  name: 'pigeon',
  about: 'Letters with enclosures.',
  options: z.strictObject({ server: z.url(), loft: z.string().default('north') }),
  account: ({ loft }) => loft,
  create: ({ server }, { fetch, place, store }) => ({
    everyMs: 1_000,
    async pass(signal) {
      const since = Number((await place()) ?? 0)
      const letters = await (await fetch(server + '/letters', { signal })).json()
      const items = letters.slice(since).map(({ text, files }, at) => ({
        key: 'letter:' + (since + at),
        payload: { text },
        files,
      }))
      if (items.length > 0) await store(items, String(letters.length))
    },
    async *readFiles(refs, { signal }) {
      for (const ref of refs) {
        const answer = await fetch(server + '/file/' + ref, { signal })
        if (answer.status === 503) throw new Error('The loft is closed.')
        yield answer.ok ? new Uint8Array(await answer.arrayBuffer()) : undefined
      }
    },
  }),
})
`

type Letter = { text: string; files?: { name: string; ref: string; bytes?: number }[] }
let letters: Letter[] = []
let contents: Record<string, string> = {}
let closed = 0
let server: Loopback

beforeEach(async () => {
  letters = []
  contents = {}
  closed = 0
  server = await startLoopback(({ path }) => {
    if (path === '/letters') return { status: 200, body: letters }
    if (closed > 0) return { status: ((closed -= 1), 503) }
    const body = contents[path.slice('/file/'.length)]
    return body === undefined ? { status: 404 } : { status: 200, body }
  })
})

const toConfig = (extra: object = {}, section: object = {}) => ({
  plugins: ['./plugins/pigeon.ts'],
  sources: { loft: { kind: 'pigeon', server: server.url, ...section } },
  hooks: {
    mappings: [{ id: 'loft', match: { path: 'loft' }, messageTemplate: 'Letter: {{text}}', deliver: false }],
    retain: 5,
  },
  runners: { reader: { kind: 'command', command: process.execPath, args: ['-e', fileAgent] } },
  agents: { defaults: { runner: 'reader', heartbeat: { every: 0 } } },
  ...extra,
})

const start = (extra: object = {}, section: object = {}) =>
  startInside({ config: toConfig(extra, section), files: { [plugin]: source } })

/** What the agent showed in the first run that ended. */
async function readShown(gateway: Pick<Inside, 'dir'>) {
  const { prompt, files } = await readFilesShown(gateway)
  return { prompt, found: Object.fromEntries([...files].map(([path, bytes]) => [path, bytes.toString()])) }
}

const withoutId = (text: string) => text.replaceAll(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, '<run>')

describe('files of the items of a source', () => {
  test('a run reads them in its workspace, and the prompt names their paths inside the boundary', async () => {
    contents = { a: 'The bill.', b: 'The plan.' }
    letters = [
      {
        text: 'Hello',
        files: [
          { name: '../bill.pdf', ref: 'a' },
          { name: 'BILL.PDF', ref: 'b' },
        ],
      },
    ]
    const gateway = await start()
    const { prompt, found } = await readShown(gateway)
    const paths = ['hookloom-files/<run>/1-_bill.pdf', 'hookloom-files/<run>/2-BILL.PDF']
    expect(withoutId(JSON.stringify(found))).toBe(
      JSON.stringify({ [paths[0] ?? '']: 'The bill.', [paths[1] ?? '']: 'The plan.' }),
    )
    const lines = withoutId(prompt).split('\n')
    const at = lines.indexOf('Files of this message, as paths in your working directory:')
    expect(lines.slice(at + 1, at + 5)).toEqual([`${paths[0]} (1 kB)`, `${paths[1]} (1 kB)`, '', 'Letter: Hello'])
    expect(lines[at - 1]).toBe('---')
  })

  test('a file that is gone, too large or one too many is a line, and the others are there', async () => {
    contents = { a: 'Kept.', big: 'x'.repeat(10 * 1024 * 1024 + 1) }
    const many = Array.from({ length: 21 }, (_, at) => ({ name: `${at}.txt`, ref: 'a' }))
    letters = [
      {
        text: 'Hello',
        files: [
          { name: 'gone.txt', ref: 'nothing' },
          { name: 'big.bin', ref: 'big' },
          { name: 'huge.bin', ref: 'never-asked', bytes: 20e6 },
          ...many,
        ],
      },
    ]
    const gateway = await start()
    const { prompt, found } = await readShown(gateway)
    expect(Object.keys(found)).toHaveLength(17)
    expect(prompt).toContain('\n1-gone.txt: gone, because its source no longer finds it: it was deleted or moved.\n')
    expect(prompt).toContain('\n2-big.bin: not kept, because it is over 10 MiB.\n')
    expect(prompt).toContain('\n3-huge.bin: not kept, because it is over 10 MiB.\n')
    expect(prompt).toContain('\n4 more: not kept, because a turn gets at most 20 files.\n')
    expect(server.received.filter(({ path }) => path.includes('never-asked'))).toEqual([])
  })

  test('while the source does not answer, the run waits, and then has them', async () => {
    contents = { a: 'Late.' }
    closed = 2
    letters = [{ text: 'Hello', files: [{ name: 'a.txt', ref: 'a' }] }]
    const { found } = await readShown(await start())
    expect(Object.values(found)).toEqual(['Late.'])
  })

  test('a runner that opens no files says so in the prompt, and nothing is fetched', async () => {
    letters = [{ text: 'Hello', files: [{ name: 'a.txt', ref: 'a' }] }]
    const deaf = `import { defineRunner } from 'hookloom/define'
      const run = async ({ prompt }) => ({ status: 'ok', text: JSON.stringify({ prompt }) })
      export default defineRunner({ name: 'deaf', about: 'Opens no files.', create: () => ({ run }) })`
    const config = {
      ...toConfig({ runners: { deaf: { kind: 'deaf' } } }),
      plugins: ['./plugins/pigeon.ts', './plugins/deaf.ts'],
      agents: { defaults: { runner: 'deaf', heartbeat: { every: 0 } } },
    }
    const gateway = await startInside({ config, files: { [plugin]: source, 'hooks/plugins/deaf.ts': deaf } })
    const { prompt } = await readShown(gateway)
    expect(prompt).toContain('1-a.txt: not kept, because the runner "deaf" cannot open files.')
    expect(existsSync(join(gateway.dir, 'agents/main/hookloom-files'))).toBe(false)
    expect(server.received.filter(({ path }) => path.startsWith('/file/'))).toEqual([])
  })

  test('a link that an agent left in its workspace leads nowhere, and the run goes on', async () => {
    contents = { a: 'The bill.' }
    const gateway = await start()
    const outside = join(gateway.dir, 'outside')
    mkdirSync(join(gateway.dir, 'agents/main'), { recursive: true })
    mkdirSync(outside)
    symlinkSync(outside, join(gateway.dir, 'agents/main/hookloom-files'))
    letters = [{ text: 'Hello', files: [{ name: 'a.txt', ref: 'a' }] }]
    const { prompt } = await readShown(gateway)
    expect(prompt).toContain('1-a.txt: not kept, because hookloom-files of the workspace is not a folder.')
    expect(readdirSync(outside)).toEqual([])
  })

  test('no sender can name files', async () => {
    contents = { a: 'The bill.' }
    const gateway = await start()
    const files = JSON.stringify({ source: 'loft', account: 'north', files: [{ name: 'a', ref: 'a' }], others: 0 })
    const sent = await post(gateway.port, '/hooks/loft', { text: 'Sly' }, [[':source-files', files]])
    expect(sent.status).toBe(400)
    await post(gateway.port, '/hooks/loft', { text: 'Sly' }, [['source-files', files]])
    expect((await readShown(gateway)).prompt).not.toContain('Files of this message')
    expect(server.received.filter(({ path }) => path.startsWith('/file/'))).toEqual([])
  })

  test('after a change of the account, a ref is not read', async () => {
    contents = { a: 'The bill.' }
    const gateway = await start()
    await runCommand(['pause', 'all', '--reason', 'a test'], { dir: gateway.dir })
    letters = [{ text: 'Hello', files: [{ name: 'a.txt', ref: 'a' }] }]
    await expect.poll(async () => (await readJobs(gateway)).length).toBe(1)
    await gateway.stop()
    const file = join(gateway.dir, 'hookloom.jsonc')
    writeFileSync(file, readFileSync(file, 'utf8').replace(/"kind": ?"pigeon"/, '$&, "loft": "south"'))
    const again = await startInside({ dir: gateway.dir })
    await runCommand(['resume', 'all'], { dir: gateway.dir })
    const { prompt, found } = await readShown(again)
    expect([prompt, found]).toEqual([
      expect.stringContaining('a.txt: not kept, because its source watches another account now.'),
      {},
    ])
  })

  test('what is stored, logged and captured has no contents, and a fixture has no ref', async () => {
    contents = { a: 'The secret plan.' }
    letters = [{ text: 'Hello', files: [{ name: 'plan.txt', ref: 'a' }] }]
    const lines: string[] = []
    const add = (fields: object, text: string) => void lines.push(`${text} ${JSON.stringify(fields)}`)
    const log = { debug: add, info: add, warn: add, error: add }
    const quiet = { reader: { kind: 'command', command: process.execPath, args: ['-e', 'console.log("{}")'] } }
    const gateway = await startInside({
      config: toConfig({ runners: quiet }),
      files: { [plugin]: source, 'hooks/transforms/letters.ts': 'export default () => null' },
      log,
    })
    await readShown(gateway)
    const [record] = await readStore(gateway.dir, (store) => store.deliveries({ limit: 9 }))
    const captured = await runCommand(
      ['capture', record?.deliveryId ?? '', '--name', 'letter', '--module', 'letters.ts'],
      { dir: gateway.dir },
    )
    expect([captured.code, captured.stderr]).toEqual([0, ''])
    await gateway.stop()
    const store = readFileSync(join(gateway.dir, 'state/hookloom.db'), 'latin1')
    expect(store + lines.join('\n') + captured.stdout).not.toContain('The secret plan.')
    const fixtures = readdirSync(gateway.dir, { recursive: true, encoding: 'utf8' }).filter((name) =>
      /letter.*\.json$/.test(name),
    )
    expect(fixtures).not.toEqual([])
    for (const name of fixtures) expect(readFileSync(join(gateway.dir, name), 'utf8')).not.toContain('source-files')
  })

  test('a transform, a template, the page and a replay see the same headers of an item, and no files among them', async () => {
    contents = { a: 'The bill.' }
    letters = [{ text: 'Hello', files: [{ name: 'a.txt', ref: 'a' }] }]
    const mapping = { id: 'loft', match: { path: 'loft' }, transform: { module: 'letters.ts' }, deliver: false }
    const code = `export default ({ headers }) => ({ message: 'Headers: ' + Object.keys(headers).toSorted().join(' ') })`
    const gateway = await startInside({
      config: toConfig({ hooks: { mappings: [mapping], retain: 5 } }),
      files: { [plugin]: source, 'hooks/transforms/letters.ts': code },
    })
    const { prompt, found } = await readShown(gateway)
    expect(Object.values(found)).toEqual(['The bill.'])
    expect(prompt).toContain('\nHeaders: content-type idempotency-key\n')
    const [record] = await readStore(gateway.dir, (store) => store.deliveries({ limit: 9 }))
    const ask = (what: string, method = 'GET') =>
      fetch(`${gateway.adminUrl}/api/deliveries/${record?.deliveryId}/${what}`, {
        method,
        headers: { authorization: `Bearer ${gatewayToken}` },
      })
    const { headers } = (await (await ask('request')).json()) as { headers: object }
    expect(Object.keys(headers).toSorted()).toEqual(['content-type', 'idempotency-key'])
    const replayed = await runCommand(['replay', '--hook', 'loft'], { dir: gateway.dir })
    expect([replayed.code, replayed.stderr]).toEqual([0, ''])
    expect((await ask('again', 'POST')).status).toBe(200)
    const isDone = async () => (await readJobs(gateway)).filter(({ state }) => state === 'done').length
    await expect.poll(isDone, { timeout: 20_000 }).toBe(2)
    for (const { steps } of await readJobs(gateway)) expect(JSON.stringify(steps)).toContain('1-a.txt (1 kB)')
  })

  test(
    'a kill while the files are fetched, and one while the agent works, lose no file',
    { timeout: 60_000 },
    async () => {
      contents = { a: 'The bill.' }
      letters = [{ text: 'Hello', files: [{ name: 'a.txt', ref: 'a' }] }]
      server.planAnswers({ status: 200, body: letters }, 'silence')
      // the first turn ends only when its gateway is gone
      const untilKilled =
        'const gateway = process.ppid; setInterval(() => process.ppid === gateway || process.exit(), 100)'
      const slow = `const fs = require('node:fs'); if (!fs.existsSync('begun')) { fs.writeFileSync('begun', ''); ${untilKilled} } else { ${fileAgent} }`
      const runners = { reader: { kind: 'command', command: process.execPath, args: ['-e', slow] } }
      const first = await startGateway({ config: toConfig({ runners }), files: { [plugin]: source } })
      await expect.poll(() => server.received.some(({ path }) => path === '/file/a'), { timeout: 20_000 }).toBe(true)
      await first.kill()
      expect(existsSync(join(first.dir, 'agents/main/hookloom-files'))).toBe(true)
      const second = await startGateway({ dir: first.dir })
      await expect.poll(() => existsSync(join(first.dir, 'agents/main/begun')), { timeout: 30_000 }).toBe(true)
      await second.kill()
      const third = await startGateway({ dir: first.dir })
      const { found } = await readShown(third)
      expect(Object.values(found)).toEqual(['The bill.'])
      expect(await readJobs(third)).toHaveLength(1)
      await third.stop()
    },
  )
})
