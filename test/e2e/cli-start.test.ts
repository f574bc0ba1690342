import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { runBuilt, runCommand } from './command.ts'
import { freePort, gatewayToken, hookToken, post, startGateway, writeFiles } from './gateway.ts'

describe('hookloom start', () => {
  test('a second gateway on one store exits 69 and names the first, and starts once the first has ended', async () => {
    const first = await startGateway()
    const second = await runBuilt(['start'], { dir: first.dir })
    expect(second.stderr).toContain(`in use by another gateway (pid ${first.child.pid})`)
    expect(second.code).toBe(69)
    await first.stop()
    const third = await startGateway({ dir: first.dir })
    expect(await third.stop()).toBe(0)
  })

  test('hookloom start prints only JSON lines, and the console channel shows only the length of a reply', async () => {
    const gateway = await startGateway()
    await post(gateway, 'agent', { message: 'Say hello', channel: 'console' })
    await gateway.printed(/a reply of \d+ characters for the console/)
    await gateway.stop()
    expect(gateway.output()).not.toContain('Say hello')
    const lines = gateway.output().trim().split('\n')
    const messages = lines.map((line): unknown => JSON.parse(line))
    // on a slow machine, the first line says that the modules are being built
    const { url, adminUrl } = gateway
    expect(messages).toContainEqual(expect.objectContaining({ level: 'info', msg: 'listening', url, adminUrl }))
    expect(messages.at(-1)).toMatchObject({ msg: 'stopped' })
    expect(gateway.output()).not.toContain(hookToken)
    expect(gateway.output()).not.toContain(gatewayToken)
  })

  test.each(['SIGTERM', 'SIGINT'] as const)(
    'the signal %s shuts the gateway down cleanly, with exit code 0',
    async (signal) => {
      const gateway = await startGateway()
      const ended = new Promise((done) => gateway.child.once('exit', (code) => done(code)))
      gateway.child.kill(signal)
      expect(await ended).toBe(0)
    },
  )

  test('SIGHUP reloads the configuration of a service, SIGUSR2 changes nothing, and the same process keeps serving', async () => {
    const gateway = await startGateway()
    gateway.child.kill('SIGUSR2')
    await gateway.printed(/this signal changes nothing here; SIGHUP reloads/)
    gateway.child.kill('SIGHUP')
    await gateway.printed(/reload: the gateway serves the same as before/)
    writeFiles(gateway.dir, { 'hookloom.jsonc': '{ "hooks": ' })
    gateway.child.kill('SIGHUP')
    await gateway.printed(/"signal":"SIGHUP".*reload: .*The last good version serves/)
    expect(await post(gateway, 'wake', { text: 'Here' })).toMatchObject({ ok: true })
    expect(await gateway.stop()).toBe(0)
  })

  test('a gateway in a terminal ends with its terminal', async () => {
    const gateway = await startGateway({ command: 'dev' })
    const ended = new Promise((done) => gateway.child.once('exit', (code) => done(code)))
    gateway.child.kill('SIGHUP')
    expect(await ended).toBe(0)
  })

  test('a second signal ends the gateway without waiting for open requests', async () => {
    const gateway = await startGateway()
    const { port } = new URL(gateway.url)
    const socket = connect(Number(port), '127.0.0.1')
    socket.on('error', () => {})
    socket.write(
      `POST /hooks/wake HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${gateway.token}\r\n` +
        'content-type: application/json\r\ncontent-length: 100\r\nexpect: 100-continue\r\n\r\n',
    )
    // from here on the gateway waits for the body
    await new Promise((asked) => socket.once('data', asked))
    const ended = new Promise((done) => gateway.child.once('exit', (code) => done(code)))
    gateway.child.kill('SIGTERM')
    await gateway.printed(/"stopping"/)
    gateway.child.kill('SIGTERM')
    expect(await ended).toBe(143)
    socket.destroy()
  })
})

test(
  '--port and --admin-port of start and dev replace the ports of the configuration',
  { timeout: 120_000 },
  async () => {
    for (const command of ['start', 'dev'] as const) {
      const [port, adminPort] = [await freePort(), await freePort()]
      const args = ['--port', String(port), '--admin-port', String(adminPort)]
      const gateway = await startGateway({ command, args, config: { server: { port: 1, adminPort: 2 } } })
      expect(new URL(gateway.url).port).toBe(String(port))
      expect(new URL(gateway.adminUrl).port).toBe(String(adminPort))
      expect(await post(gateway, 'wake', { text: 'Here' })).toMatchObject({ ok: true })
      expect(await runCommand(['send', 'wake', '-'], { dir: gateway.dir, stdin: '{"text":"There"}' })).toMatchObject({
        code: 0,
      })
      expect(await gateway.stop()).toBe(0)
    }
    expect(await runCommand(['start', '--port', '65536'])).toMatchObject({ code: 64 })
  },
)
