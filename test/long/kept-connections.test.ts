// Connections that clients and proxies keep are reused safely, also through a slow network and a real nginx.
import { spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { onFileEnd } from '../file-end.ts'
import { freePort, hookToken, makeFolder } from '../e2e/gateway.ts'
import { startInside } from '../e2e/inside.ts'
import { readBlock } from '../pages.ts'

/** A relay that delivers everything, also the end of a connection, 30 ms late. */
async function startRelay(port: number): Promise<number> {
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1')
    const forward = (from: Socket, to: Socket) => {
      from.on('data', (chunk) => setTimeout(() => to.write(chunk), 30))
      from.on('close', () => setTimeout(() => to.destroy(), 30)).on('error', () => {})
    }
    forward(near, far)
    forward(far, near)
  }).listen(0, '127.0.0.1')
  onFileEnd(() => void server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  // a listening TCP server has an AddressInfo
  return (server.address() as AddressInfo).port
}

/** The status of a wake, or the error of its connection. */
function post(port: number, agent: Agent): Promise<{ status: number | string | undefined; isReused: boolean }> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${hookToken}`, 'content-type': 'application/json' }
    const req = request({ host: '127.0.0.1', port, path: '/hooks/wake', method: 'POST', headers, agent })
    const end = (status: number | string | undefined) => resolve({ status, isReused: req.reusedSocket })
    req.on('response', (res) => res.resume().on('end', () => end(res.statusCode)))
    req.on('error', (error: NodeJS.ErrnoException) => end(error.code))
    req.end('{"text":"still there?"}')
  })
}

/** Reuses twenty connections after 4 to 18 seconds: past the 10 seconds for a head, and past the 5 seconds that Node keeps a connection. */
async function reuseConnections(port: number) {
  const moments = Array.from({ length: 20 }, (_, index) => 4_000 + index * 737)
  return await Promise.all(
    moments.map(async (ms) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      onFileEnd(() => agent.destroy())
      await post(port, agent)
      await wait(ms)
      return await post(port, agent)
    }),
  )
}

test('each of twenty kept connections serves another request, whenever it is reused through a network with 30 ms', async () => {
  const gateway = await startInside()
  const answers = await reuseConnections(await startRelay(gateway.port))
  expect(answers).toEqual(answers.map(() => ({ status: 200, isReused: true })))
})

test.skipIf(spawnSync('nginx', ['-v']).error !== undefined)(
  'nginx with the kept connections of the page loses no request (needs nginx)',
  async () => {
    const gateway = await startInside()
    const [dir, port, relay] = [makeFolder(), await freePort(), await startRelay(gateway.port)]
    const block = readBlock('src/cli/operations/README.md', 'nginx', 'ssl_certificate')
      .replace('127.0.0.1:8790', `127.0.0.1:${relay}`)
      .replace('listen 443 ssl', `listen 127.0.0.1:${port}`)
      .replaceAll(/^.*ssl_certificate.*$/gm, '')
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${dir}/${name};`,
    )
    const file = join(dir, 'nginx.conf')
    const head = `daemon off; master_process off; pid ${dir}/pid; error_log stderr;\nevents {}`
    writeFileSync(file, `${head}\nhttp { access_log off; ${paths.join(' ')}\n${block} }`)
    const nginx = spawn('nginx', ['-p', dir, '-c', file], { stdio: 'ignore' })
    onFileEnd(() => void nginx.kill())
    await vi.waitFor(async () => expect((await post(port, new Agent())).status).toBe(200), { timeout: 60_000 })
    const answers = await reuseConnections(port)
    expect(answers).toEqual(answers.map(() => ({ status: 200, isReused: true })))
  },
)
