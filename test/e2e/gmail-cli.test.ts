// `hookloom gmail`: the first set-up, a second one, a consent, and one sentence for each wrong argument.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { main } from '../../src/cli/main.ts'
import { type CommandResult, runCommand } from './command.ts'
import { account, client, type FakeGoogle, startGoogle } from './fakes/google.ts'
import { mainFile, makeConfigDir, toChildEnv } from './gateway.ts'
import { makeMailDir, project, writeClientFile } from './gmail-stage.ts'

/** A config directory without a mailbox. Its configuration has a comment to keep, and the URLs of the fake Google. */
function makeFreshDir(google: FakeGoogle): string {
  const dir = makeConfigDir()
  const config = {
    hooks: {
      enabled: true,
      token: 'hook-secret-0123456789abcdefghij',
      presets: [],
      gmail: { endpoints: google.endpoints },
    },
  }
  writeFileSync(join(dir, 'hookloom.jsonc'), `// mine\n${JSON.stringify(config, undefined, 2)}\n`)
  return dir
}

/** Runs a command that asks for a consent. `answer` gets the URL, and returns the text that the person pastes. */
function runWithConsent(
  dir: string,
  args: readonly string[],
  answer: (url: string) => Promise<string | undefined>,
): Promise<Pick<CommandResult, 'code' | 'stdout' | 'stderr'>> {
  const stdin = new PassThrough()
  return new Promise((resolve, reject) => {
    let [stdout, stderr, isAnswered] = ['', '', false]
    const ended = main(['gmail', ...args, '--no-browser', '--config-dir', dir], {
      env: toChildEnv(),
      script: mainFile,
      stdin,
      writeOut: (text) => void (stdout += text),
      writeError: (text) => {
        stderr += text
        const [url] = /http:\/\/\S+\/auth\?\S+/.exec(stderr) ?? []
        if (url === undefined || isAnswered || !stderr.includes('Paste the address')) return
        isAnswered = true
        void answer(url).then((pasted) => pasted !== undefined && stdin.write(`${pasted}\n`), reject)
      },
    })
    ended.then((code) => resolve({ code, stdout, stderr }), reject)
  })
}

const visit = (google: FakeGoogle) => async (url: string) => {
  await fetch(google.giveConsent(url))
  return undefined
}

/** Every file of the directory with its text. */
function toFiles(dir: string): Record<string, string> {
  const names = readdirSync(dir, { recursive: true, encoding: 'utf8' })
  const files = names.filter((name) => statSync(join(dir, name)).isFile())
  return Object.fromEntries(files.map((name) => [name, readFileSync(join(dir, name), 'utf8')]))
}

const parseStates = (stdout: string) =>
  stdout
    .split('\n\n')[0]
    ?.split('\n')
    .map((line) =>
      line
        .split(/\s{2,}/)
        .slice(0, 2)
        .join(' '),
    )
const secrets = /refresh-\d|access-\d|shh-client-secret|code-\d/

describe('hookloom gmail setup', () => {
  test('hookloom gmail setup creates everything for a watched mailbox, keeps comments, and changes nothing the second time', async () => {
    const google = await startGoogle()
    const dir = makeFreshDir(google)
    const args = ['setup', '--account', account, '--credentials', writeClientFile(dir), '--label', 'INBOX']
    const first = await runWithConsent(dir, args, visit(google))
    expect(first.code).toBe(0)
    expect(parseStates(first.stdout)).toEqual([
      'changed consent',
      'changed api',
      'changed api',
      'changed topic',
      'changed publisher',
      'changed subscription',
      'changed watch',
      'changed config',
    ])
    expect(first.stdout + first.stderr).not.toMatch(secrets)
    expect(readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')).toMatch(/^\/\/ mine\n/)
    expect(statSync(join(dir, 'state/gmail-consent.json')).mode & 0o777).toBe(0o600)
    expect(await runCommand(['check'], { dir })).toMatchObject({ code: 0 })

    const before = toFiles(dir)
    const calls = google.requests.length
    const second = await runCommand(['gmail', 'setup', '--account', account, '--label', 'INBOX'], { dir })
    expect(parseStates(second.stdout)?.map((line) => line.split(' ')[0])).toEqual(Array.from({ length: 8 }, () => 'ok'))
    expect(toFiles(dir)).toEqual(before)
    const changing = google.requests.slice(calls).filter((call) => !call.startsWith('GET ') && call !== 'POST /token')
    expect(changing).toEqual([])
    expect(google.faults).toEqual([])
  })

  test('an edit of the configuration during the consent is kept', async () => {
    const google = await startGoogle()
    const dir = makeFreshDir(google)
    const file = join(dir, 'hookloom.jsonc')
    const edit = () => writeFileSync(file, readFileSync(file, 'utf8').replace('// mine', '// mine, edited'))
    const args = ['setup', '--account', account, '--mode', 'poll', '--credentials', writeClientFile(dir)]
    const { code } = await runWithConsent(dir, args, async (url) => {
      edit()
      return await visit(google)(url)
    })
    expect(code).toBe(0)
    expect(readFileSync(file, 'utf8')).toMatch(/^\/\/ mine, edited\n[^]*"account": "desk@example.org"/)
  })

  test('hookloom gmail setup skips the API step if the consent does not allow it, and says where to look', async () => {
    const google = await startGoogle()
    const dir = makeMailDir(google, { mode: 'pull', project })
    const denied = { status: 403, body: { error: { status: 'PERMISSION_DENIED' } } }
    google.fail('/services/', denied, denied)
    const { code, stdout } = await runCommand(['gmail', 'setup'], { dir })
    expect(code).toBe(0)
    expect(stdout).toMatch(/skipped {2}api .*https:\/\/console\.cloud\.google\.com\/apis\/library\/gmail/)
  })

  test('hookloom gmail setup --dry-run prints each call to Google, makes no call and writes nothing', async () => {
    const google = await startGoogle()
    const dir = makeFreshDir(google)
    const file = writeClientFile(dir)
    const before = toFiles(dir)
    const push = ['--push-endpoint', 'https://mail.example.org/gmail-pubsub', '--push-service-account', 'p@x.example']
    const args = ['gmail', 'setup', '--account', account, '--credentials', file, ...push, '--dry-run']
    const { code, stdout } = await runCommand(args, { dir })
    expect(code).toBe(0)
    expect(stdout).toContain(`PUT ${google.url}/v1/projects/${project}/topics/hookloom-gmail`)
    expect(stdout).toContain('"oidcToken":{"serviceAccountEmail":"p@x.example"')
    const [, policy = ''] = /setIamPolicy (\{.*\})$/m.exec(stdout) ?? []
    const member = 'serviceAccount:gmail-api-push@system.gserviceaccount.com'
    expect(JSON.parse(policy)).toEqual({
      policy: { bindings: [{ role: 'roles/pubsub.publisher', members: [member] }] },
    })
    expect(google.requests).toEqual([])
    expect(toFiles(dir)).toEqual(before)
  })

  test('hookloom gmail setup in mode poll asks Google only for the consent', async () => {
    const google = await startGoogle()
    const dir = makeFreshDir(google)
    const args = ['setup', '--account', account, '--mode', 'poll', '--credentials', writeClientFile(dir)]
    const { code, stdout } = await runWithConsent(dir, args, visit(google))
    expect({ code, states: parseStates(stdout) }).toEqual({ code: 0, states: ['changed consent', 'changed config'] })
    expect(google.requests).toEqual(['POST /token', 'POST /token', 'GET /gmail/v1/users/me/profile'])
  })

  test('hookloom gmail setup accepts the key of a service account instead of a consent', async () => {
    const google = await startGoogle()
    const dir = makeFreshDir(google)
    writeFileSync(join(dir, 'key.json'), JSON.stringify(google.serviceAccountKey), { mode: 0o600 })
    const args = [
      'gmail',
      'setup',
      '--account',
      account,
      '--project',
      project,
      '--service-account',
      join(dir, 'key.json'),
    ]
    expect(await runCommand(args, { dir })).toMatchObject({ code: 0 })
    expect(readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')).toContain('"serviceAccountKey": "key.json"')
    expect((await runCommand(['gmail', 'sync'], { dir })).stdout).toMatch(/read from now on/)
    expect(google.faults).toEqual([])
  })

  test('hookloom gmail setup moves a subscription from pull to push, and changes only it and the configuration', async () => {
    const google = await startGoogle()
    const dir = makeMailDir(google, { mode: 'pull', project })
    await runCommand(['gmail', 'setup'], { dir })
    const push = [
      '--mode',
      'push',
      '--push-endpoint',
      'https://m.example.org/g',
      '--push-service-account',
      'p@x.example',
    ]
    const { stdout } = await runCommand(['gmail', 'setup', ...push], { dir })
    expect(parseStates(stdout)?.filter((line) => line.startsWith('changed'))).toEqual([
      'changed subscription',
      'changed config',
    ])
    expect(google.pubsub.subscriptions.get(`projects/${project}/subscriptions/hookloom-gmail`)).toMatchObject({
      pushConfig: { pushEndpoint: 'https://m.example.org/g', oidcToken: { audience: 'https://m.example.org/g' } },
    })
  })
})

describe('a subscription of another topic', () => {
  test.each([
    ['of another topic', `projects/${project}/topics/other`, `the topic projects/${project}/topics/other,`],
    ['of a deleted topic', '_deleted-topic_', 'a topic that was deleted,'],
  ])(
    'hookloom gmail setup refuses a subscription %s, and accepts another name with --subscription',
    async (_, topic, named) => {
      const google = await startGoogle()
      const dir = makeMailDir(google, { mode: 'pull', project })
      const subscription = `projects/${project}/subscriptions/hookloom-gmail`
      google.pubsub.subscriptions.set(subscription, { topic })
      const { code, stderr } = await runCommand(['gmail', 'setup'], { dir })
      expect(code).not.toBe(0)
      expect(stderr).toContain(`${subscription} belongs to ${named} not to projects/${project}/topics/hookloom-gmail`)
      expect(stderr).toContain('--subscription <name>')
      expect(google.pubsub.subscriptions.get(subscription)).toEqual({ topic })

      const other = await runCommand(['gmail', 'setup', '--subscription', 'mails'], { dir })
      expect(other.code).toBe(0)
      expect(google.pubsub.subscriptions.get(`projects/${project}/subscriptions/mails`)).toMatchObject({
        topic: `projects/${project}/topics/hookloom-gmail`,
      })
    },
  )
})

describe('hookloom gmail auth', () => {
  test('hookloom gmail auth accepts a pasted address if the browser is on another machine', async () => {
    const google = await startGoogle()
    const dir = makeFreshDir(google)
    const args = ['auth', '--account', account, '--credentials', writeClientFile(dir)]
    const { code, stdout, stderr } = await runWithConsent(dir, args, async (url) => google.giveConsent(url))
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
    expect(stderr).toContain(`${account} consented`)
    expect(stderr).not.toMatch(secrets)
    expect(google.faults).toEqual([])
  })

  test('hookloom gmail auth goes on if another page requests a path that is no URL', async () => {
    const google = await startGoogle()
    const dir = makeFreshDir(google)
    const args = ['auth', '--account', account, '--credentials', writeClientFile(dir)]
    const { code } = await runWithConsent(dir, args, async (url) => {
      expect((await fetch(`${new URL(url).searchParams.get('redirect_uri')}//`)).status).toBe(404)
      return await visit(google)(url)
    })
    expect(code).toBe(0)
  })

  test('hookloom gmail auth fails if the person declines, or the address belongs to another request', async () => {
    const google = await startGoogle()
    const dir = makeFreshDir(google)
    const args = ['auth', '--account', account, '--credentials', writeClientFile(dir)]
    const declined = await runWithConsent(dir, args, async (url) => {
      const query = new URL(url).searchParams
      return `${query.get('redirect_uri')}/?error=access_denied&state=${query.get('state')}`
    })
    const foreign = await runWithConsent(dir, args, async () => 'http://127.0.0.1:1/?state=other&code=code-9')
    expect([declined.code, foreign.code]).toEqual([77, 77])
    expect(declined.stderr).toContain('The consent was declined')
    expect(foreign.stderr).toContain('not the address of the current consent')
  })

  test('hookloom gmail auth refuses the consent of another mailbox, and stores nothing of it', async () => {
    const google = await startGoogle()
    const dir = makeFreshDir(google)
    const args = ['auth', '--account', 'other@example.org', '--credentials', writeClientFile(dir)]
    const { code, stderr } = await runWithConsent(dir, args, visit(google))
    expect(code).toBe(77)
    expect(stderr).toContain(`for ${account}, not for other@example.org`)
    expect(Object.keys(toFiles(dir))).not.toContain('state/gmail-consent.json')
  })
})

describe('the command line of gmail', () => {
  test.each([
    [['setup', '--port', '80x'], /Expected a whole number from 0 to 65535/],
    [['setup', '--max-bytes', '10mb'], /Expected a whole number from 1 to 10000000/],
    [['setup', '--mode', 'pol'], /Did you mean (poll|pull)/],
    [['setup', '--mode', 'webhook'], /Expected one of pull, push, poll/],
    [['setup', '--account', 'nobody'], /--account must be a mail address/],
    [['setup', '--account', account], /Google Cloud project is missing/],
    [['setup', '--account', account, '--mode', 'poll'], /OAuth client is missing/],
    [['auth'], /mailbox is missing/],
    [['statsu'], /Did you mean status\?/],
  ])('hookloom gmail with the arguments %j prints one sentence and exits 64', async (args, why) => {
    const dir = makeConfigDir({ config: { hooks: { presets: [] } } })
    const { code, stderr, stdout } = await runCommand(['gmail', ...args], { dir })
    expect(stderr).toMatch(why)
    expect({ code, stdout, lines: stderr.trim().split('\n').length }).toEqual({ code: 64, stdout: '', lines: 1 })
  })

  test('hookloom gmail run, status, sync and stop say how to set up a mailbox if no mailbox is configured', async () => {
    const dir = makeConfigDir()
    for (const name of ['run', 'status', 'sync', 'stop']) {
      const { code, stderr } = await runCommand(['gmail', name], { dir })
      expect([name, code, stderr]).toEqual([name, 78, expect.stringContaining('hookloom gmail setup')])
    }
  })

  test('hookloom gmail status exits 69 if no process watches, and hookloom gmail stop asks Google to end the notifications', async () => {
    const google = await startGoogle()
    const dir = makeMailDir(google, { mode: 'pull', project })
    const { code, json } = await runCommand(['gmail', 'status', '--json'], { dir })
    expect({ code, said: json() }).toMatchObject({
      code: 69,
      said: [{ account, mode: 'pull', state: 'not running', problems: [] }],
    })
    expect((await runCommand(['gmail', 'stop', '--dry-run'], { dir })).stdout).toContain('/users/me/stop')
    expect(google.requests).toEqual([])
    expect(await runCommand(['gmail', 'stop'], { dir })).toMatchObject({ code: 0 })
    expect(google.requests.at(-1)).toBe('POST /gmail/v1/users/me/stop')
    expect(JSON.stringify(json())).not.toContain(client.client_secret)
  })
})
