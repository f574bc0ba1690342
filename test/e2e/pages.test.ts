// The commands on the pages work as printed: the shell blocks of a page run in order against a gateway, except the pages and commands that are listed
// below. Most commands of hookloom run in this process.
import { spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'jsonc-parser'
import { afterAll, describe, expect, test } from 'vitest'
import { type Block, pages, readBlock, readBlocks, root } from '../pages.ts'
import { runCommand, runProcess } from './command.ts'
import { type Gateway, mainFile, makeFolder, post, startGateway, toChildEnv, writeFiles } from './gateway.ts'

/** Commands that are not run here. */
const elsewhere: readonly RegExp[] = [
  /^(npm|gcloud|echo "whsec_)/,
  /hookloom gmail /,
  /hookloom init --from /,
  // this command needs a stopped gateway
  /hookloom store copy /,
  // these commands serve until they are stopped, and a gateway runs already
  /^hookloom (?:dev|start)$/,
  /^hookloom (?:relay|dev --relay) /,
  // this command asks a sender
  /hookloom recover \w/,
  // not every machine has this tool
  ...(spawnSync('sqlite3', ['--version']).error === undefined ? [] : [/^sqlite3 /]),
]

const isTyped = ({ language, text }: Block) => language === 'sh' && /^(curl|npx hookloom|hookloom|sqlite3) /m.test(text)

/** Other tests follow these guides step by step, and the page for production needs root. */
const guides = new Set(
  ['transforms', 'src/cli/operations', 'src/cli/scaffold', 'src/gateway/replay'].map((folder) => `${folder}/README.md`),
)

const typed = pages
  .filter((page) => !guides.has(page))
  .map((page) => ({ page, blocks: readBlocks(page) }))
  .filter(({ blocks }) => blocks.some(isTyped))

test('the check of the pages finds commands in them', () => {
  expect(typed.length).toBeGreaterThan(8)
})

/** The secret of the example in GitHub's documentation. */
const githubSecret = "It's a Secret to Everybody"

/** The state that a page expects before its commands. */
const stages: Readonly<
  Record<
    string,
    { readonly files?: () => Record<string, string>; readonly hooks?: () => object; readonly sections?: () => object }
  >
> = {
  'presets/README.md': {
    hooks: () => ({ presets: ['gmail'] }),
    files: () => ({
      'hooks/verifiers/acme.ts': readBlock('src/gateway/proofs/verifiers/README.md', 'ts', 'defineVerifier'),
      'hooks/presets/weaver.ts': readBlock('presets/README.md', 'ts', 'definePreset'),
      'hooks/presets/weaver.fixtures/released.json': readBlock('presets/README.md', 'json', '"expect"'),
    }),
  },
  'src/gateway/jobs/README.md': {
    hooks: () => ({ alerts: { channel: 'console' } }),
  },
  'src/cli/recipes/README.md': {
    hooks: () => ({
      mappings: parse(readBlock('src/cli/recipes/README.md', 'jsonc', '"id": "reviews"')).hooks.mappings,
    }),
    sections: () => ({ budgets: parse(readBlock('src/cli/recipes/README.md', 'jsonc', '"budgets"')).budgets }),
  },
  'presets/gmail/README.md': { hooks: () => ({ presets: ['gmail'] }) },
  'src/gateway/proofs/verifiers/README.md': {
    hooks: () => ({
      mappings: ['"github"', '"asana"'].map((mark) =>
        parse(
          readBlock('src/gateway/proofs/verifiers/README.md', 'jsonc', mark).replace('${GITHUB_SECRET}', githubSecret),
        ),
      ),
    }),
  },
}

describe('commands in the pages', { timeout: 300_000 }, () => {
  let shared: ReturnType<typeof setStage> | undefined

  afterAll(async () => {
    await (await shared)?.gateway.stop()
  })

  test.each(typed)(
    'the commands of $page succeed as printed, and their answers are those that the page shows',
    async ({ page, blocks }) => {
      const stage = stages[page] === undefined ? await (shared ??= setStage(page)) : await setStage(page)
      for (const [index, block] of blocks.entries()) {
        if (!isTyped(block)) continue
        let printed = ''
        for (const command of toCommands(block.text)) printed = await stage.type(command)
        const next = blocks[index + 1]
        if (next?.language === 'json' && toCommands(block.text).at(-1)?.startsWith('curl ') === true) {
          expect(toShape(printed)).toEqual(toShape(next.text))
        }
      }
      if (stages[page] !== undefined) expect(await stage.gateway.stop()).toBe(0)
    },
  )
})

describe('the table "When webhooks do not arrive"', () => {
  /** The text that each command prints when its symptom exists. */
  const shown: Readonly<Record<string, RegExp>> = {
    'hookloom doctor':
      /^(?=.*could be asked, if their mappings had "recover": github).*hook signed: last request .* ago/s,
    'hookloom list --refused': /signed .*401/,
    'hookloom show <request>': /kept +encrypted.*"hookloom retry --refused --hook signed" runs it/s,
    'hookloom retry --refused': /^0 ran, 0 repeat .* 1 stays refused\.\n {2}1 × signed: No signature matches/,
    'hookloom recover': /^No mapping has "recover", so no sender was asked\./,
    'hookloom list --state parked': /parked/,
    'hookloom list --dead': /"\?" is not a recipient on slack/,
  }

  const rows = (
    readFileSync(join(root, 'src/cli/operations/README.md'), 'utf8').split('## When webhooks do not arrive\n')[1] ?? ''
  )
    .split('\n## ')[0]
    ?.split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(1)

  test('the table "When webhooks do not arrive" has five rows, and the commands that this file runs', () => {
    const commands = rows?.map((row) =>
      [...(row.split('|')[2] ?? '').matchAll(/`([^`]+)`/g)].map(([, text = '']) => text),
    )
    expect(commands).toHaveLength(5)
    expect(commands?.flat()).toEqual(Object.keys(shown))
  })

  test('the commands of the table "When webhooks do not arrive" show the cause of each symptom', async () => {
    const mappings = [
      { id: 'signed', match: { path: 'signed' }, verify: { scheme: 'github', secret: 'of-the-sender-0123456789' } },
      { match: { path: 'broken' }, transform: { module: 'broken.ts' } },
      { match: { path: 'nowhere' }, channel: 'slack', to: '?' },
    ]
    const gateway = await startGateway({
      config: { channels: { slack: { botToken: 'none', baseUrl: 'http://127.0.0.1:1024' } }, hooks: { mappings } },
      files: { 'hooks/transforms/broken.ts': "export default () => { throw new Error('broken') }" },
    })
    const body = '{}'
    const sign = (secret: string) => `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
    const push = (secret: string) => {
      const headers = { 'content-type': 'application/json', 'x-hub-signature-256': sign(secret) }
      return fetch(`${gateway.url}/signed`, { method: 'POST', headers, body })
    }
    expect((await push('of-the-sender-0123456789')).status).toBe(200)
    const request = (await push('of somebody else')).headers.get('x-request-id') ?? ''
    await post(gateway, 'broken', {})
    await post(gateway, 'nowhere', {})
    for (const [command, pattern] of Object.entries(shown)) {
      const args = command.replace('<request>', request).split(' ').slice(1)
      // the gateway writes the records of the senders and the failed run a moment later
      const look = async () => {
        const { stdout, stderr } = await runCommand(args, { dir: gateway.dir })
        return stdout + stderr
      }
      await expect.poll(look, { interval: 500 }).toMatch(pattern)
    }
    expect(await gateway.stop()).toBe(0)
  })
})

test('the CI job of the page about HTTP succeeds only with the first verdict', async () => {
  const [, script = ''] =
    /^ +run: \|\n([^]*)$/m.exec(readBlock('src/gateway/http/README.md', 'yaml', 'HOOKLOOM_TOKEN')) ?? []
  const { hooks } = parse(readBlock('src/gateway/http/README.md', 'jsonc', '"verdicts"'))
  const runners = {
    gone: { kind: 'command', command: 'no-such-program' },
    mirror: { kind: 'command', command: 'sh', args: ['-c', `grep -q 'octo/good at 1a2b' && echo pass || echo FAIL`] },
  }
  for (const [runner, repository, code, said] of [
    ['mirror', 'octo/good', 0, 'is done. Its verdict is pass.'],
    ['mirror', 'octo/bad', 1, 'is done. Its verdict is fail.'],
    ['echo', 'octo/good', 1, 'is done. Its verdict is none.'],
    ['gone', 'octo/good', 1, 'is dead. Its verdict is none.'],
  ] as const) {
    const gateway = await startGateway({ config: { hooks, runners, agents: { defaults: { runner } } } })
    const run = { GITHUB_RUN_ID: '17', GITHUB_RUN_ATTEMPT: '1', GITHUB_REPOSITORY: repository, GITHUB_SHA: '1a2b' }
    const env = { ...toChildEnv(), HOOKS: gateway.url, HOOKLOOM_TOKEN: gateway.token, ...run }
    // GitHub runs the steps of a job with `-e`
    const ran = await runProcess('sh', ['-e', '-c', script], { env })
    await gateway.stop()
    expect([ran.code, ran.stdout, ran.stderr]).toEqual([code, expect.stringContaining(said), ''])
  }
})

/** Lines as a shell reads them: continued lines become one line, and so do quoted texts of several lines. */
function toCommands(text: string): string[] {
  return [...text.replaceAll('\\\n', ' ').matchAll(/(?:[^'\n]|'[^']*')+/g)]
    .map(([line]) => line.replace(/\s+#.*$/, '').trim())
    .filter((line) => line !== '')
}

/** Replaces ids, which differ in each run. */
function toShape(json: string): unknown {
  const withoutIds = json.replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'ID')
  return JSON.parse(withoutIds.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME'))
}

/** A gateway in development, as `npm start` runs it, with one delivery and its run. It uses other ports than the page. */
async function setStage(page: string) {
  const home = makeFolder()
  const cwd = makeFolder()
  const dir = join(home, '.hookloom')
  const env = { ...toChildEnv(), HOME: home }
  expect((await runCommand(['init'], { env: { HOME: home } })).code).toBe(0)
  const { files, hooks, sections } = stages[page] ?? {}
  writeFiles(dir, files?.() ?? {})
  writeConfig(join(dir, 'hookloom.jsonc'), { hooks: hooks?.() ?? {}, sections: sections?.() ?? {} })
  copyFileSync(join(root, 'presets/gmail/fixtures/one-mail.json'), join(cwd, 'fixture.json'))
  const gateway = await startGateway({ dir, command: 'dev' })
  const token = /^HOOKLOOM_TOKEN="?([^"\n]+)"?$/m.exec(readFileSync(join(dir, '.env'), 'utf8'))?.[1] ?? ''
  const first = await post({ url: gateway.url, token }, 'agent', { message: 'first' })
  // the earlier lines that read variables: each command runs in its own shell
  let read = ''

  async function type(command: string): Promise<string> {
    if (elsewhere.some((pattern) => pattern.test(command))) return ''
    if (command.startsWith('. ')) {
      read += `${command}\n`
      return ''
    }
    const saves = command.includes(' add ')
    const before = saves ? countLive(gateway) : 0
    const line = adaptCommand(command, gateway, first)
    const [, typedHere] = /^"\$NODE" "\$MAIN" ([^"'$|&;<>\\]*)$/.exec(line) ?? []
    if (typedHere !== undefined) {
      const args = typedHere.split(/ +/).map((word) => (existsSync(join(cwd, word)) ? join(cwd, word) : word))
      const { code, stdout, stderr } = await runCommand(args, { env: { HOME: home } })
      expect([command, code, code === 0 ? '' : `${stdout}${stderr}`]).toEqual([command, 0, ''])
      if (saves) await waitUntilLive(gateway, before)
      return stdout
    }
    const ran = spawnSync('sh', ['-c', `${read}${line}`], {
      cwd,
      env: { ...env, NODE: process.execPath, MAIN: mainFile },
      encoding: 'utf8',
    })
    expect([command, ran.status, ran.status === 0 ? '' : `${ran.stdout}${ran.stderr}`]).toEqual([command, 0, ''])
    if (saves) await waitUntilLive(gateway, before)
    return ran.stdout
  }
  return { gateway, type }
}

function adaptCommand(command: string, { url, adminUrl }: Gateway, first: Readonly<Record<string, unknown>>): string {
  return command
    .replaceAll('http://127.0.0.1:8790/hooks', url)
    .replaceAll('http://127.0.0.1:8791', adminUrl)
    .replaceAll('01a1fb45-0fdd-7713-8f98-02441594b06c', String(first['deliveryId']))
    .replaceAll('01a1fb45-0ff5-7758-aed7-b1b0c25eeb26', String(first['runId']))
    .replace(/^(npx )?hookloom /, '"$NODE" "$MAIN" ')
}

function writeConfig(file: string, { hooks, sections }: { hooks: object; sections: object }): void {
  const text = readFileSync(file, 'utf8').replaceAll(/8790|8791/g, '0')
  const config: { hooks: object } = parse(text, [], { allowTrailingComma: true })
  writeFileSync(file, JSON.stringify({ ...config, ...sections, hooks: { ...config.hooks, ...hooks } }, undefined, 2))
}

function countLive(gateway: Gateway): number {
  return gateway.output().match(/hookloom\.jsonc is live/g)?.length ?? 0
}

async function waitUntilLive(gateway: Gateway, before: number): Promise<void> {
  await gateway.printed(new RegExp(`^(?:[^]*?hookloom\\.jsonc is live){${before + 1}}`))
}
