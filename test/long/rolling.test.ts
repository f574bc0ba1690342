// Two gateways on one Postgres, behind the Caddy of the compose file, are restarted one after the other under load. No request fails.
import { spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { renderCaddyfile } from '../../src/cli/scaffold/service.ts'
import { newSchema, whyNoPostgres, withDatabase } from '../contract/postgres-stage.ts'
import { count } from '../counts.ts'
import { freePort, type Gateway, hookToken, makeFolder, startGateway } from '../e2e/gateway.ts'

const whySkipped =
  whyNoPostgres ?? (spawnSync('caddy', ['version']).error === undefined ? undefined : 'caddy is not installed')

test.skipIf(whySkipped)(
  'a rolling restart behind a balancer that reads /readyz fails no request',
  { timeout: 120_000 },
  async (context) => {
    const { url, schema, drop } = await newSchema()
    const ports = [await freePort(), await freePort(), await freePort()] as const
    const start = (port: number, dir?: string) =>
      startGateway({
        ...(dir === undefined ? {} : { dir }),
        config: { server: { port, trustedProxies: ['127.0.0.1'] }, store: { url } },
      })
    const gateways: Gateway[] = [await start(ports[0]), await start(ports[1])]
    onTestFinished(async () => {
      await Promise.all(gateways.map((gateway) => gateway.kill()))
      await drop()
    })

    const folder = makeFolder()
    const file = join(folder, 'Caddyfile')
    const text = renderCaddyfile({ hooksPath: '/hooks', port: 8790 })
      .replace('gateway-1:8790', `127.0.0.1:${ports[0]}`)
      .replace('gateway-2:8790', `127.0.0.1:${ports[1]}`)
      .replace('\n:8080 {', `\nhttp://127.0.0.1:${ports[2]} {`)
    writeFileSync(file, `{\nadmin off\nauto_https off\n}\n${text}`)
    const caddy = spawn('caddy', ['run', '--config', file], {
      env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
      stdio: 'ignore',
    })
    onTestFinished(() => void caddy.kill('SIGKILL'))

    const statuses: (number | string)[] = []
    const ids = new Set<string>()
    const over = new AbortController()
    const send = async (headers: Readonly<Record<string, string>> = {}): Promise<number | string> => {
      try {
        const answer = await fetch(`http://127.0.0.1:${ports[2]}/hooks/wake`, {
          method: 'POST',
          headers: { authorization: `Bearer ${hookToken}`, 'content-type': 'application/json', ...headers },
          body: '{"text":"hello"}',
        })
        const body = (await answer.json().catch(() => ({}))) as { deliveryId?: string }
        if (body.deliveryId !== undefined) ids.add(body.deliveryId)
        return answer.status
      } catch (error) {
        return String(error)
      }
    }
    while ((await send()) !== 200);
    // a tunnel in front of the balancer names the clients: a client that guesses tokens locks out only itself
    const guess = { authorization: 'Bearer wrong', 'x-forwarded-for': '203.0.113.9' }
    await Promise.all(Array.from({ length: 60 }, () => send(guess)))
    expect(await send(guess)).toBe(429)
    expect(await send({ 'x-forwarded-for': '203.0.113.10' })).toBe(200)
    const load = Array.from({ length: 8 }, async () => {
      while (!over.signal.aborted) statuses.push(await send())
    })
    for (const [index, port] of [ports[0], ports[1]].entries()) {
      const old = gateways[index]
      if (old === undefined) throw new Error('no gateway')
      expect(await old.stop()).toBe(0)
      const fresh = await start(port, old.dir)
      gateways[index] = fresh
      // the other gateway may stop only after the balancer has sent a request to the new one
      await fresh.printed(/"hook":"wake"/)
    }
    over.abort()
    await Promise.all(load)
    expect(statuses.filter((status) => status !== 200)).toEqual([])
    expect(statuses.length).toBeGreaterThan(100)
    const { rows } = await withDatabase((client) =>
      client.query<{ count: string }>(`SELECT count(*) AS count FROM ${schema}.deliveries`),
    )
    expect(Number(rows[0]?.count)).toBe(ids.size)
    count(context, { acknowledged: ids.size, lost: 0, twice: 0, replaced: 2 })
  },
)
