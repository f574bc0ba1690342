// Plugins of outsiders: a package that is installed into the config directory, and a file below hooks/.
import { execFileSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { appendFileSync, mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { runCommand } from './command.ts'
import { type Loopback, startLoopback } from './fakes/loopback.ts'
import { gatewayToken, hookToken, makeConfigDir, writeFiles } from './gateway.ts'
import { type Inside, readDegradedBy, readNewestJob, readStore, startInside } from './inside.ts'

/** A package with a channel that keeps a counter between two messages. */
const channel = `import { defineChannel } from 'hookloom/define'
import { z } from 'zod'

export default defineChannel({
  name: 'harbour',
  about: 'The harbour. \`to\`: a quay.',
  options: z.strictObject({ server: z.url(), token: z.string().min(8) }),
  create({ server, token, to: own }, { fetch, clock }) {
    let posts = 0
    return {
      dedupes: false,
      whyNot: (to = own) => (to === undefined ? 'The harbour needs a quay.' : undefined),
      split: (text) => [text],
      async send({ to = own, text, signal }) {
        posts += 1
        const body = JSON.stringify({ text, posts, at: clock() })
        const answer = await fetch(server + '/' + to, { method: 'POST', body, signal, headers: { authorization: token } })
        if (answer.ok) return { kind: 'sent', id: String(posts) }
        return { kind: 'transient', detail: 'The harbour answered ' + answer.status + '.' }
      },
      probe: async () => ({ ok: true, detail: 'The harbour is open.' }),
    }
  },
})
`

/** A runner that answers with what it was asked, and reports what that cost. */
const runner = `import { defineRunner } from 'hookloom/define'
import { z } from 'zod'

export default defineRunner({
  name: 'parrot',
  about: 'Repeats the message.',
  options: z.strictObject({ greeting: z.string().min(2), state: z.boolean().default(true) }),
  create: ({ greeting }, { id, clock }) => ({
    async run({ message, history, signal }) {
      if (message.includes('break')) throw new TypeError('no')
      if (message.includes('nothing')) return { status: 'fine' }
      return { status: 'ok', text: greeting + ' from ' + id + ': ' + message, usage: { inputTokens: 3, outputTokens: 4 } }
    },
    probe: async () => ({ ok: clock() > 0, detail: 'The parrot is awake.' }),
  }),
})
`

/** A sender that proves its requests by own code. */
const sender = `import { createHmac } from 'node:crypto'
import { defineSender } from 'hookloom/define'

const toProof = (body, secret) => createHmac('sha512', secret).update(body).digest('hex')

export default defineSender({
  name: 'harbour',
  label: 'The harbour',
  docs: 'https://harbour.example/webhooks',
  marks: [{ header: 'x-harbour-event' }],
  event: [{ in: 'header', name: 'x-harbour-event' }],
  deliveryId: [{ in: 'body', path: ['tide'] }],
  scheme: {
    kind: 'code',
    confidence: 'verified',
    code: {
      headers: ['x-harbour-proof'],
      verify: ({ headers, rawBody }, { secrets }) =>
        secrets.some((secret) => headers['x-harbour-proof'] === toProof(rawBody, secret))
          ? { ok: true }
          : { ok: false, fault: 'sender', reason: 'The proof is of other bytes.' },
    },
  },
})
`

/** An outbox with one page. */
const outbox = `import { defineOutbox } from 'hookloom/define'
import { z } from 'zod'

export default defineOutbox({
  name: 'locker',
  about: 'The parcels of a week.',
  remembers: true,
  options: z.strictObject({ server: z.url(), token: z.string() }),
  create({ server, token }, { openApi }) {
    const call = openApi({ baseUrl: server, authorize: () => ({ authorization: token }) })
    return {
      name: 'locker ' + server,
      remembers: true,
      hasTimes: true,
      overlap: 600_000,
      async *pages() {
        const { text, now } = await call({ path: '/parcels' })
        const attempts = JSON.parse(text).map(({ id, at, body }) => ({
          id, place: at, isDelivered: false, ref: id,
          request: { headers: { 'content-type': 'application/json' }, body: new TextEncoder().encode(body) },
        }))
        yield { attempts, now }
      },
      fetch: async () => undefined,
      state: async () => ({ isOn: true }),
      turnOn: async () => {},
    }
  },
})
`

/** A source that reads the state of the lock, once for each of its turns. */
const source = `import { defineSource } from 'hookloom/define'
import { z } from 'zod'

export default defineSource({
  name: 'lock',
  about: 'The turns of the lock.',
  options: z.strictObject({ server: z.url() }),
  account: ({ server }) => new URL(server).host,
  create: ({ server }, { fetch, store }) => ({
    everyMs: 1_000,
    async pass(signal) {
      const { turn } = await (await fetch(server + '/lock', { signal })).json()
      await store(turn === undefined ? [] : [{ key: 'lock:' + turn, payload: { turn } }], String(turn))
    },
  }),
})
`

/** Packs the sources as an author would, and installs the archive into a config directory. */
function installPackage(dir: string, files: Readonly<Record<string, string>>): void {
  const source = mkdtempSync(join(tmpdir(), 'hookloom-plugin-'))
  const manifest = { name: '@acme/hookloom-harbour', version: '1.0.0', type: 'module', exports: './index.ts' }
  writeFiles(source, { 'package.json': JSON.stringify(manifest), ...files })
  execFileSync('npm', ['pack', '--silent'], { cwd: source })
  const archive = join(source, readdirSync(source).find((name) => name.endsWith('.tgz')) ?? '')
  writeFiles(dir, { 'package.json': '{"private":true}' })
  execFileSync('npm', ['install', '--silent', '--no-audit', '--no-fund', '--offline', archive], { cwd: dir })
}

let server: Loopback

beforeEach(async () => {
  server = await startLoopback(({ method }) => ({ status: 200, body: method === 'GET' ? { turn: 7 } : {} }))
})

const file = 'hooks/plugins/harbour.ts'
const toConfig = (section: object = {}, plugins: readonly string[] = ['./plugins/harbour.ts']) => ({
  plugins,
  channels: { harbour: { server: server.url, token: 'tk_0123456789', ...section } },
})

async function ask({ url }: Pick<Inside, 'url'>, payload: object = {}): Promise<Response> {
  return fetch(`${url}/agent`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${hookToken}` },
    body: JSON.stringify({ message: 'The tide is out.', channel: 'harbour', to: 'quay', ...payload }),
  })
}

describe('a channel of an installed package', () => {
  test('a channel of a package posts a reply, has its id in the store, and is in check and in doctor', async () => {
    const dir = makeConfigDir({ config: toConfig({}, ['@acme/hookloom-harbour']) })
    installPackage(dir, { 'index.ts': channel })
    const checked = await runCommand(['check', '--json'], { dir })
    expect(checked.json()).toContainEqual(
      expect.objectContaining({
        name: 'channel harbour',
        ok: true,
        detail: expect.stringMatching(/^builds and loads/),
      }),
    )
    const probed = await runCommand(['doctor', '--json'], { dir })
    expect(probed.json()).toContainEqual({
      name: 'channel-harbour',
      ok: true,
      detail: expect.stringMatching(/^The harbour is open\. channels\.harbour\.onUnknown is "stop": /),
    })
    const gateway = await startInside({ dir })
    expect((await ask(gateway)).status).toBe(200)
    await expect.poll(() => server.received.map(({ path }) => path)).toEqual(['/quay'])
    expect(server.received[0]?.headers.authorization).toBe('tk_0123456789')
    await expect.poll(() => readNewestJob(gateway)).toMatchObject({ state: 'done' })
    const steps = (await readNewestJob(gateway))?.steps
    expect(steps?.find(({ name }) => name === 'deliver')?.detail).toBe('sent to harbour quay as 1')
  })
})

describe('plugins below hooks/', () => {
  test('a saved plugin goes live, and a broken save leaves the last good version serving', async () => {
    const gateway = await startInside({ config: toConfig(), files: { [file]: channel } })
    writeFiles(gateway.dir, { [file]: channel.replace('{ text, posts', "{ text: 'Ahoy! ' + text, posts") })
    await expect
      .poll(
        async () => {
          await ask(gateway)
          return server.received.at(-1)?.text
        },
        { interval: 300 },
      )
      .toContain('Ahoy! ')
    writeFiles(gateway.dir, { [file]: 'export default {' })
    await expect.poll(() => readDegradedBy(gateway)).toEqual([expect.stringMatching(/does not build/)])
    const before = server.received.length
    await ask(gateway)
    await expect.poll(() => server.received.length).toBeGreaterThan(before)
    expect(server.received.at(-1)?.text).toContain('Ahoy! ')
  })

  test.each([
    ['is missing', {}, /The plugin ".\/plugins\/harbour\.ts" does not exist\. Create hooks\/plugins\/harbour\.ts/],
    ['does not build', { [file]: 'export default {' }, /does not build/],
    ['declares nothing', { [file]: 'export default { name: 1 }' }, /must export by default what defineChannel/],
  ])('a plugin that %s does not stop the gateway, and its replies wait', async (_, files, why) => {
    const gateway = await startInside({ config: toConfig(), files })
    expect((await ask(gateway)).status).toBe(200)
    await expect.poll(async () => (await readNewestJob(gateway))?.lastError).toMatch(why)
    expect(await readNewestJob(gateway)).toMatchObject({ state: 'queued', attempts: 0 })
    expect(await readDegradedBy(gateway)).toEqual([expect.stringMatching(why)])
  })

  test.each([
    ['a wrong option', { token: 7 }, {}, /channels\.harbour\.token/],
    ['an unknown key', { tokn: 'x' }, {}, /channels\.harbour\.tokn is an unknown key\. Did you mean token\?/],
    [
      'a section that nothing has',
      {},
      { channels: { harbor: {} } },
      /channels\.harbor is neither built in nor comes from a plugin\. Did you mean harbour\?/,
    ],
  ])('%s is an error of the configuration that names the key', async (_, section, extra, why) => {
    const dir = makeConfigDir({ config: { ...toConfig(section), ...extra }, files: { [file]: channel } })
    const { code, json } = await runCommand(['check', '--json'], { dir })
    expect(code).toBe(78)
    const details = json().map(({ detail }) => detail)
    expect(details.join('\n')).toMatch(why)
  })

  test.each(['../harbour.ts', './../harbour.ts', './plugins/../../x.ts', '/tmp/x.ts', 'a b'])(
    'the plugin %j is no package and no path below hooks/',
    async (name) => {
      const dir = makeConfigDir({ config: { plugins: [name] } })
      const { code, stderr, stdout } = await runCommand(['check'], { dir })
      expect(code).toBe(78)
      expect(stdout + stderr).toContain('must be the name of a package, or "./" and a path below hooks/')
    },
  )

  test('without plugins, a section of another name is an unknown key, as before', async () => {
    const dir = makeConfigDir({ config: { channels: { harbour: {} } } })
    const { code, stderr, stdout } = await runCommand(['check'], { dir })
    expect(code).toBe(78)
    expect(stdout + stderr).toContain('channels.harbour is an unknown key')
  })

  test('a plugin cannot have the name of a built-in channel', async () => {
    const dir = makeConfigDir({ config: toConfig(), files: { [file]: channel.replace("'harbour'", "'slack'") } })
    const { code, stderr, stdout } = await runCommand(['check'], { dir })
    expect(code).toBe(78)
    expect(stdout + stderr).toContain('has the channel "slack", which is built in')
  })
})

describe('a sender of a plugin', () => {
  const toSenderConfig = (plugins: readonly string[]) => ({
    plugins,
    hooks: {
      mappings: [
        {
          id: 'tide',
          match: { path: 'tide', source: 'harbour', event: 'ebb' },
          verify: { scheme: 'harbour', secret: 'a secret of the harbour' },
          messageTemplate: 'The tide is out.',
        },
      ],
    },
  })
  const body = '{"tide":"t-1"}'
  const post = ({ url }: Pick<Inside, 'url'>, secret = 'a secret of the harbour') =>
    fetch(`${url}/tide`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-harbour-event': 'ebb',
        'x-harbour-proof': createHmac('sha512', secret).update(body).digest('hex'),
      },
      body,
    })

  test('a sender of a package proves its requests by own code, and its deliveries have its name, event and id', async () => {
    const dir = makeConfigDir({ config: toSenderConfig(['@acme/hookloom-harbour']) })
    installPackage(dir, { 'index.ts': sender })
    expect((await runCommand(['check'], { dir })).code).toBe(0)
    const gateway = await startInside({ dir })
    expect((await post(gateway, 'another secret of the harbour')).status).toBe(401)
    expect((await post(gateway)).status).toBe(200)
    expect((await post(gateway)).status).toBe(200)
    const records = await readStore(dir, (store) => store.deliveries({ limit: 9 }))
    expect(records).toMatchObject([{ source: 'harbour', event: 'ebb', mappingId: 'tide' }])
  })

  test('check warns of a mapping for a sender of a plugin that signs, if it has no verify', async () => {
    const mappings = [{ id: 'tide', match: { path: 'tide', source: 'harbour' }, messageTemplate: 'm' }]
    const config = { plugins: ['./plugins/harbour.ts'], hooks: { mappings } }
    const dir = makeConfigDir({ config, files: { [file]: sender } })
    expect((await runCommand(['check'], { dir })).stdout).toContain('takes requests of The harbour and has no verify')
  })

  test('a broken save leaves the last good version serving, and a version that never loaded asks the sender to repeat', async () => {
    const gateway = await startInside({ config: toSenderConfig(['./plugins/harbour.ts']), files: { [file]: sender } })
    writeFiles(gateway.dir, { [file]: sender.replace('label', 'lable') })
    await expect
      .poll(() => readDegradedBy(gateway))
      .toEqual([expect.stringContaining('must export by default what defineChannel')])
    expect((await post(gateway)).status).toBe(200)
    const never = await startInside({
      config: toSenderConfig(['./plugins/harbour.ts']),
      files: { [file]: 'export default 7' },
    })
    expect((await post(never)).status).toBe(503)
    writeFiles(never.dir, { [file]: sender })
    await expect.poll(async () => (await post(never)).status).toBe(200)
  })

  test.each([
    ['sender', 'github'],
    ['scheme', 'gitlab-token'],
  ])('a plugin cannot have the name of a built-in %s', async (what, name) => {
    const files = { [file]: sender.replace("'harbour'", `'${name}'`) }
    const dir = makeConfigDir({ config: toSenderConfig(['./plugins/harbour.ts']), files })
    const { code, stderr, stdout } = await runCommand(['check'], { dir })
    expect(code).toBe(78)
    expect(stdout + stderr).toContain(`has the ${what} "${name}", which is built in`)
  })
})

describe('a runner of a plugin', () => {
  const place = 'hooks/plugins/parrot.ts'
  const toRunners = (section: object = {}) => ({
    plugins: ['./plugins/parrot.ts'],
    runners: { polly: { kind: 'parrot', greeting: 'Ahoy', ...section } },
    agents: { defaults: { runner: 'polly', heartbeat: { every: 0 } } },
  })
  const say = (gateway: Inside, message: string) => ask(gateway, { message, channel: 'last', deliver: false })

  test('a runner of a plugin performs a turn, and is in check and in doctor', async () => {
    const written: string[] = []
    const write = ({ text }: { text: string }) => void written.push(text)
    const gateway = await startInside({ config: toRunners(), files: { [place]: runner }, write })
    await ask(gateway, { channel: 'console' })
    await expect.poll(() => written.join('')).toContain('Ahoy from polly: The tide is out.')
    const checked = await runCommand(['check', '--json'], { dir: gateway.dir })
    expect(checked.json()).toContainEqual(
      expect.objectContaining({
        name: 'plugin ./plugins/parrot.ts',
        ok: true,
        detail: expect.stringMatching(/: runner parrot$/),
      }),
    )
    const probed = await runCommand(['doctor', '--json'], { dir: gateway.dir })
    expect(probed.json()).toContainEqual({ name: 'runner-polly', ok: true, detail: 'The parrot is awake.' })
  })

  test('a runner of a plugin answers requests, keeps values, and has work of its own; its exceptions show no secret', async () => {
    const code = `import { defineRunner } from 'hookloom'
      import { z } from 'zod'
      export default defineRunner({
        name: 'parrot',
        about: 'Keeps what it heard.',
        options: z.strictObject({ greeting: z.string(), token: z.string() }),
        create: ({ token }, { state, agents, log, audit }) => ({
          async run({ prompt, runId }) {
            const from = await state.read('heard')
            const text = String(Number(from?.text ?? 0) + 1)
            audit({ by: 'x ' + token, act: 'hear', target: 'y ' + token, details: { z: token } })
            await state.write([{ key: 'heard', from, to: { text, until: Date.now() + 60_000 } }])
            return { status: 'forwarded', id: runId, detail: 'Heard.' }
          },
          async serve(request) {
            if (request.headers.get('authorization') !== 'Bearer ' + token) return new Response('no', { status: 401 })
            if (request.method === 'DELETE') throw new Error('with ' + token)
            return Response.json({ heard: (await state.read('heard'))?.text, agents, sent: await request.text() })
          },
          passes: { everyMs: 1_000, pass: async () => (log.info({}, 'a pass with ' + token), { problem: 'No seeds, says ' + token }) },
        }),
      })`
    const token = 'tk_0123456789'
    const lines: string[] = []
    const write = (fields: object, text: string) =>
      void lines.push(JSON.stringify([fields, text, Object.values(fields).map(String)]))
    const log = { debug: write, info: write, warn: write, error: write }
    const gateway = await startInside({ config: toRunners({ token }), files: { [place]: code }, log })
    await say(gateway, 'x')
    const call = (method: string, given = token) =>
      fetch(`${gateway.url}/runners/polly`, {
        method,
        headers: { authorization: `Bearer ${given}` },
        ...(method === 'POST' && { body: 'seed' }),
      })
    await expect
      .poll(async () => await (await call('POST')).json())
      .toEqual({ heard: '1', agents: ['main'], sent: 'seed' })
    const refused = await call('POST', 'another')
    expect([refused.status, await refused.json()]).toEqual([401, expect.objectContaining({ code: 'unauthorized' })])
    expect((await call('DELETE')).status).toBe(500)
    await expect.poll(() => readDegradedBy(gateway)).toEqual(['runners.polly: No seeds, says ***'])
    expect(lines.join('')).toContain('a pass with ***')
    expect(lines.join('')).not.toContain(token)
    expect(await readStore(gateway.dir, async (store) => JSON.stringify(await store.auditLog({ limit: 9 })))).toContain(
      'y ***',
    )
  })

  test('an exception and an invalid result of a runner are failures that name the plugin', async () => {
    const gateway = await startInside({ config: toRunners(), files: { [place]: runner } })
    await say(gateway, 'break')
    await expect
      .poll(async () => (await readNewestJob(gateway))?.lastError)
      .toContain('hooks/plugins/parrot.ts threw a TypeError at')
    await say(gateway, 'nothing')
    await expect
      .poll(async () => (await readNewestJob(gateway))?.lastError)
      .toContain('hooks/plugins/parrot.ts returned no valid result')
  })

  test('while a runner of a plugin is broken its turns wait, and a mended save starts them', async () => {
    const gateway = await startInside({ config: toRunners(), files: { [place]: 'export default {' } })
    await say(gateway, 'The tide is out.')
    await expect
      .poll(async () => (await readNewestJob(gateway))?.lastError)
      .toMatch(/does not build.*The turn waits until it is fixed/)
    expect(await readNewestJob(gateway)).toMatchObject({ state: 'queued', attempts: 0 })
    writeFiles(gateway.dir, { [place]: runner })
    await expect.poll(() => readDegradedBy(gateway)).toEqual([])
    await say(gateway, 'The tide is in.')
    await expect.poll(() => readNewestJob(gateway)).toMatchObject({ state: 'done' })
  })

  test.each([
    ['a wrong option', { greeting: 7 }, /runners\.polly\.greeting/],
    ['a kind that nothing has', { kind: 'parot' }, /runners\.polly\.kind is "parot".*Did you mean parrot\?/],
  ])('%s is an error of the configuration that names the key', async (_, section, why) => {
    const dir = makeConfigDir({ config: toRunners(section), files: { [place]: runner } })
    const { code, json } = await runCommand(['check', '--json'], { dir })
    expect(code).toBe(78)
    const details = json().map(({ detail }) => detail)
    expect(details.join('\n')).toMatch(why)
  })
})

describe('an outbox of a plugin', () => {
  const place = 'hooks/plugins/locker.ts'
  const toOutboxConfig = (recover: object = {}) => ({
    plugins: ['./plugins/locker.ts'],
    hooks: {
      mappings: [
        {
          id: 'parcels',
          match: { path: 'parcels' },
          messageTemplate: 'Parcel {{n}}',
          deliver: false,
          recover: { sender: 'locker', server: server.url, token: 'tk_0123456789', ...recover },
        },
      ],
    },
  })

  test('an outbox of a plugin is asked for what did not arrive', async () => {
    server = await startLoopback(({ path }) => ({
      status: 200,
      body: path === '/parcels' ? [{ id: 'p1', at: Date.now() - 300_000, body: '{"n":7}' }] : [],
    }))
    const gateway = await startInside({ config: toOutboxConfig(), files: { [place]: outbox } })
    const asked = await runCommand(['recover', 'locker', '--since', '1d', '--json'], { dir: gateway.dir })
    expect(asked.json()).toMatchObject([{ sender: 'locker', hook: 'parcels', missing: 1, recovered: 1 }])
    const again = await runCommand(['recover', 'locker', '--since', '1d', '--json'], { dir: gateway.dir })
    expect(again.json()).toMatchObject([{ missing: 0, recovered: 0 }])
    expect(server.received[0]?.headers.authorization).toBe('tk_0123456789')
    await expect.poll(() => readNewestJob(gateway)).toMatchObject({ state: 'done' })
    const checked = await runCommand(['doctor', '--json'], { dir: gateway.dir })
    expect(checked.json()).toContainEqual({
      name: 'recover',
      ok: true,
      detail: 'the gateway asks for what they could not deliver: locker',
    })
  })

  test.each([
    ['a wrong option', { token: 7 }, /mapping "parcels": recover\.token/],
    [
      'a sender that nothing has',
      { sender: 'loker' },
      /"loker" is neither built in nor comes from a plugin\. Did you mean locker\?/,
    ],
    ['a wrong option of a built-in sender', { sender: 'stripe' }, /hooks\.mappings\[0\]\.recover/],
  ])('%s is an error of the configuration that names the key', async (_, recover, why) => {
    const dir = makeConfigDir({ config: toOutboxConfig(recover), files: { [place]: outbox } })
    const { code, stdout, stderr } = await runCommand(['check'], { dir })
    expect(stdout + stderr).toMatch(why)
    expect(code).toBe(78)
  })
})

describe('a package with a plugin of each kind', () => {
  const parts = {
    'channel.ts': channel,
    'runner.ts': runner,
    'sender.ts': sender,
    'outbox.ts': outbox,
    'source.ts': source,
  }
  const index = `import channel from './channel.ts'
import outbox from './outbox.ts'
import runner from './runner.ts'
import sender from './sender.ts'
import source from './source.ts'
export default [channel, runner, sender, outbox, source]
`
  const name = '@acme/hookloom-harbour'
  const secret = 'a secret of the harbour'
  const toWhole = () => ({
    ...toConfig({ to: 'quay' }, [name]),
    runners: { polly: { kind: 'parrot', greeting: 'Ahoy' } },
    sources: { lock: { kind: 'lock', server: server.url } },
    agents: { defaults: { runner: 'polly', heartbeat: { every: 0 } } },
    hooks: {
      mappings: [
        { id: 'lock', match: { path: 'lock' }, messageTemplate: 'Turn {{turn}}.', channel: 'harbour', to: 'lock' },
        {
          id: 'tide',
          match: { path: 'tide', source: 'harbour', event: 'ebb' },
          verify: { scheme: 'harbour', secret },
          messageTemplate: 'The tide {{tide}} is out.',
          channel: 'harbour',
          recover: { sender: 'locker', server: server.url, token: 'tk_0123456789' },
        },
      ],
    },
  })
  const send = ({ url }: Pick<Inside, 'url'>, id: string) => {
    const body = JSON.stringify({ tide: id })
    const proof = createHmac('sha512', secret).update(body).digest('hex')
    const headers = { 'content-type': 'application/json', 'x-harbour-event': 'ebb', 'x-harbour-proof': proof }
    return fetch(`${url}/tide`, { method: 'POST', headers, body })
  }

  test('its sender, runner, channel, outbox and source work together, are shown as built-in ones are, and a broken version leaves the last good one', async () => {
    const dir = makeConfigDir({ config: toWhole() })
    installPackage(dir, { 'index.ts': index, ...parts })

    const checked = await runCommand(['check', '--json'], { dir })
    expect(checked.code).toBe(0)
    expect(checked.json()).toContainEqual(
      expect.objectContaining({
        name: `plugin ${name}`,
        ok: true,
        detail: expect.stringMatching(/: channel harbour, runner parrot, sender harbour, outbox locker, source lock$/),
      }),
    )
    const { stdout } = await runCommand(['schema'], { dir })
    const { properties, definitions: _ } = JSON.parse(stdout)
    expect(properties.channels.properties.harbour).toMatchObject({
      description: 'The harbour. `to`: a quay.',
      properties: { server: {}, token: {}, to: {}, timeoutMs: {}, onUnknown: {} },
    })
    expect(properties.hooks.properties.mappings.items.properties.channel.anyOf[0].enum).toContain('harbour')
    const kinds = (sections: { properties: Record<string, { const?: string }> }[], key: string) =>
      sections.map(({ properties: keys }) => keys[key]?.const)
    expect(kinds(properties.runners.additionalProperties.oneOf, 'kind')).toContain('parrot')
    expect(kinds(properties.sources.additionalProperties.oneOf, 'kind')).toContain('lock')
    expect(kinds(properties.hooks.properties.mappings.items.properties.recover.oneOf, 'sender')).toContain('locker')

    const gateway = await startInside({ dir })
    await expect
      .poll(() => server.received.filter(({ path }) => path === '/lock').map(({ text }) => text))
      .toContainEqual(expect.stringContaining('Ahoy from polly: Turn 7.'))
    expect((await send(gateway, 't-1')).status).toBe(200)
    await expect
      .poll(() => server.received.filter(({ path }) => path === '/quay').map(({ text }) => text))
      .toEqual([expect.stringContaining('Ahoy from polly: The tide t-1 is out.')])
    await expect.poll(() => readNewestJob(gateway)).toMatchObject({ state: 'done' })
    const records = await readStore(dir, (store) => store.deliveries({ limit: 9 }))
    const record = records.find(({ hook }) => hook === 'tide')
    expect(record).toMatchObject({ source: 'harbour', event: 'ebb' })
    const shown = await runCommand(['show', record?.deliveryId ?? ''], { dir })
    expect(shown.stdout).toContain('sent to harbour quay as 2')
    expect(shown.stdout).toContain('harbour')
    const api = await fetch(`${gateway.adminUrl}/api/outlets`, { headers: { authorization: `Bearer ${gatewayToken}` } })
    expect(JSON.stringify(await api.json())).toContain('"name":"harbour"')

    writeFiles(dir, { 'node_modules/@acme/hookloom-harbour/index.ts': 'export default {' })
    // packages are read again with each save
    appendFileSync(join(dir, 'hookloom.jsonc'), '\n')
    await expect
      .poll(() => readDegradedBy(gateway), { timeout: 30_000 })
      .toEqual([expect.stringMatching(/does not build/)])
    expect((await send(gateway, 't-2')).status).toBe(200)
    await expect.poll(() => server.received.filter(({ path }) => path === '/quay').length).toBe(2)
  })
})
