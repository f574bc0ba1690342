// The examples of "Run in production" work with the real programs nginx and Caddy, and name metrics that the gateway has.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { request as requestPlain } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse as parseYaml } from 'yaml'
import { z } from 'zod'
import { readBlock, readPage, root } from '../pages.ts'
import { freePort, type Gateway, hookToken, makeFolder, startGateway } from './gateway.ts'

const page = 'src/cli/operations/README.md'
const stops: (() => void)[] = []
let gateway: Gateway

beforeAll(async () => {
  gateway = await startGateway({ config: { server: { trustedProxies: ['127.0.0.1'] } } })
})

afterAll(() => {
  for (const stop of stops) stop()
})

function hasProgram(program: string, ...args: string[]): boolean {
  return spawnSync(program, args).error === undefined
}

type Sent = { readonly port: number; readonly from: string; readonly token: string; readonly tls: boolean }

/** The status that a sender with this loopback address gets; undefined if no program listens. */
function send({ port, from, token, tls }: Sent): Promise<number | undefined> {
  const body = JSON.stringify({ text: `from ${from}` })
  const headers = { host: 'hooks.example.com', authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const options = { host: '127.0.0.1', port, localAddress: from, path: '/hooks/wake', method: 'POST', headers }
  return new Promise((done) => {
    const sent = tls ? request({ ...options, rejectUnauthorized: false }) : requestPlain(options)
    sent.once('response', (answer) => {
      answer.resume()
      done(answer.statusCode)
    })
    sent.once('error', () => done(undefined))
    sent.end(body)
  })
}

/** Starts a proxy. Returns the status of a valid request, the statuses of twenty guesses from another address, the status of a valid request
 * from that address, and the status of the first request again. */
async function sendThrough(
  run: () => ReturnType<typeof spawn>,
  proxy: Pick<Sent, 'port' | 'tls'>,
  guesser: string,
): Promise<unknown[]> {
  const child = run()
  let printed = ''
  child.stderr?.on('data', (chunk) => (printed += chunk))
  stops.push(() => child.kill('SIGKILL'))
  const ended = new Promise<never>((_, failed) => {
    child.once('exit', (code) => failed(new Error(`the proxy ended with ${code}: ${printed}`)))
  })
  ended.catch(() => undefined)
  const good = { ...proxy, from: '127.0.0.9', token: hookToken }
  const answered = async (): Promise<number> => {
    for (;;) {
      const status = await send(good)
      if (status !== undefined) return status
    }
  }
  const first = await Promise.race([answered(), ended])
  const guesses = Array.from({ length: 20 }, () => send({ ...proxy, from: guesser, token: 'wrong' }))
  const guessed = new Set(await Promise.all(guesses))
  return [first, guessed, await send({ ...proxy, from: guesser, token: hookToken }), await send(good)]
}

/** The client with the guesses is locked out, and the other one is not. */
const expectedStatuses = [200, new Set([401]), 429, 200]

// the default of Debian is a home that everybody can read, with the fixtures in it
test.skipIf(process.getuid?.() !== 0 || !hasProgram('useradd', '--help'))(
  'no other user can read the home that the page makes for the user of the service (needs root, useradd)',
  () => {
    const [line = ''] = /^useradd .*$/m.exec(readPage(page)) ?? []
    const prefix = makeFolder()
    for (const folder of ['etc', 'var/lib']) mkdirSync(join(prefix, folder), { recursive: true })
    for (const name of ['passwd', 'group', 'shadow', 'gshadow']) writeFileSync(join(prefix, 'etc', name), '')
    const [program = '', ...args] = line.split(' ')
    execFileSync(program, ['--prefix', prefix, ...args])
    expect((statSync(join(prefix, 'var/lib/hookloom')).mode & 0o777).toString(8)).toBe('700')
  },
)

test.skipIf(!hasProgram('nginx', '-v') || !hasProgram('openssl', 'version'))(
  'nginx with the configuration of the page forwards requests over TLS with the address of their sender (needs nginx, openssl)',
  async () => {
    const dir = makeFolder()
    const port = await freePort()
    const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')]
    const subject = ['-subj', '/CN=hooks.example.com', '-days', '2']
    execFileSync(
      'openssl',
      ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, ...subject],
      { stdio: 'ignore' },
    )
    const block = readBlock(page, 'nginx', 'ssl_certificate')
      .replace('127.0.0.1:8790', new URL(gateway.url).host)
      .replace('listen 443 ssl', `listen 127.0.0.1:${port} ssl`)
      .replace('/etc/letsencrypt/live/hooks.example.com/fullchain.pem', cert)
      .replace('/etc/letsencrypt/live/hooks.example.com/privkey.pem', key)
    expect(await sendThrough(() => startNginx(dir, block), { port, tls: true }, '127.0.0.2')).toEqual(expectedStatuses)
  },
)

function startNginx(dir: string, block: string) {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${dir}/${name};`)
  const file = join(dir, 'nginx.conf')
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${dir}/pid; error_log stderr;\nevents {}\nhttp { access_log off; ${paths.join(' ')}\n${block} }`,
  )
  return spawn('nginx', ['-p', dir, '-c', file])
}

test.skipIf(!hasProgram('nginx', '-v'))(
  'a body that is over the limit is 413 behind nginx too, and never the 502 of a connection that was reset (needs nginx)',
  async () => {
    const port = await freePort()
    const server = `server { listen 127.0.0.1:${port}; client_max_body_size 50m; location / { proxy_pass ${new URL(gateway.url).origin}; proxy_http_version 1.1; proxy_set_header Connection ""; } }`
    const child = startNginx(makeFolder(), server)
    stops.push(() => child.kill('SIGKILL'))
    const good = { port, from: '127.0.0.9', token: hookToken, tls: false }
    await expect.poll(() => send(good)).toBe(200)
    const headers = { authorization: `Bearer ${hookToken}`, 'content-type': 'application/json' }
    const body = Buffer.alloc(5_000_000, 'a')
    const statuses = new Set<number>()
    for (let sent = 0; sent < 10; sent++) {
      const { status } = await fetch(`http://127.0.0.1:${port}/hooks/wake`, { method: 'POST', headers, body })
      statuses.add(status)
    }
    expect([...statuses]).toEqual([413])
  },
)

test.skipIf(!hasProgram('caddy', 'version'))(
  'Caddy with the configuration of the page forwards requests with the address of their sender (needs caddy)',
  async () => {
    const dir = makeFolder()
    const port = await freePort()
    const block = readBlock(page, 'text', 'hooks.example.com')
    const file = join(dir, 'Caddyfile')
    writeFileSync(file, block)
    // with its real name, Caddy would request a certificate
    expect(spawnSync('caddy', ['adapt', '--config', file]).status).toBe(0)
    const here = block
      .replace('hooks.example.com', `http://hooks.example.com:${port}`)
      .replace('127.0.0.1:8790', new URL(gateway.url).host)
    writeFileSync(file, `{\nadmin off\nauto_https off\n}\n${here}`)
    const env = { ...process.env, HOME: dir, XDG_DATA_HOME: dir, XDG_CONFIG_HOME: dir }
    const caddy = () => spawn('caddy', ['run', '--config', file], { env })
    expect(await sendThrough(caddy, { port, tls: false }, '127.0.0.3')).toEqual(expectedStatuses)
  },
)

describe('metrics in the pages about production', () => {
  async function readMetricNames(): Promise<Set<string>> {
    const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
    return new Set(
      [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].flatMap(([, name = '', type]) =>
        type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
      ),
    )
  }

  test.each(['src/cli/operations/grafana.json', 'src/cli/operations/alerts.yaml', page])(
    'the gateway has each metric that %s names',
    async (file) => {
      const names = readPage(file).match(/\b(?:hookloom|process|nodejs)_\w+/g) ?? []
      expect(names.length).toBeGreaterThan(3)
      expect(await readMetricNames()).toEqual(
        expect.toSatisfy((have: Set<string>) => names.every((name) => have.has(name))),
      )
    },
  )

  test('each alert rule has a query, a severity and an instruction', () => {
    const Rules = z.object({
      groups: z.tuple([
        z.object({
          name: z.literal('hookloom'),
          rules: z.array(
            z.strictObject({
              alert: z.string().regex(/^Hookloom[A-Z]/),
              expr: z.string().min(1),
              for: z
                .string()
                .regex(/^\d+m$/)
                .optional(),
              labels: z.strictObject({ severity: z.enum(['critical', 'warning', 'info']) }),
              annotations: z.strictObject({ summary: z.string(), description: z.string() }),
            }),
          ),
        }),
      ]),
    })
    const parsed = Rules.parse(parseYaml(readPage('src/cli/operations/alerts.yaml')))
    expect(new Set(parsed.groups[0].rules.map(({ alert }) => alert)).size).toBe(parsed.groups[0].rules.length)
  })

  test('the metrics include the version, and totals of the process that do not shrink', async () => {
    const read = async () => await (await fetch(`${gateway.adminUrl}/metrics`)).text()
    const value = (text: string, name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
    const [first, second] = [await read(), await read()]
    expect(first).toMatch(/^hookloom_build_info\{version="\d+\.\d+\.\d+",node_version="v\d+\.\d+\.\d+"\} 1$/m)
    for (const name of ['process_cpu_seconds_total', 'nodejs_eventloop_active_seconds_total']) {
      expect(value(first, name)).toBeGreaterThan(0)
      expect(value(second, name)).toBeGreaterThanOrEqual(value(first, name))
    }
    expect(value(first, 'process_resident_memory_bytes')).toBeGreaterThan(10_000_000)
  })

  test('each panel of the dashboard has a position and a query', () => {
    const { panels, title }: { title: string; panels: { gridPos: object; targets: { expr: string }[] }[] } = JSON.parse(
      readFileSync(join(root, 'src/cli/operations/grafana.json'), 'utf8'),
    )
    expect(title).toBe('Hookloom')
    for (const { gridPos, targets } of panels) {
      expect(Object.keys(gridPos).toSorted()).toEqual(['h', 'w', 'x', 'y'])
      expect(targets.every(({ expr }) => expr.includes('hookloom_'))).toBe(true)
    }
  })
})
