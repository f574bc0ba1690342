// A gateway in servers of other people: `createHookloom` with `mountedAt`, and no port of its own for hooks.
import { once } from 'node:events'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener, type HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import express from 'express'
import { Hono } from 'hono'
import Koa from 'koa'
import { describe, expect, test } from 'vitest'
import { createHookloom, type Hookloom } from '../../src/app.ts'
import { onFileEnd } from '../file-end.ts'
import { hookToken, makeConfigDir } from './gateway.ts'
import { readNewestJob } from './inside.ts'
import { bearer, exchange, json, toRequest } from './wire.ts'

const servers: Readonly<Record<string, (handler: () => Hookloom['handler']) => RequestListener>> = {
  'node:http': (handler) => (req, res) => handler().node(req, res, () => res.end('mine')),
  'Express 5': (handler) =>
    express()
      .use((req, res, next) => handler().node(req, res, next))
      .use((_req, res) => void res.send('mine')),
  'Express 5, mounted at the path of the hooks': (handler) =>
    express()
      .use('/hooks', (req, res, next) => handler().node(req, res, next))
      .use((_req, res) => void res.send('mine')),
  Koa: (handler) =>
    new Koa()
      .use((ctx, next) => handler().koa()(ctx, next))
      .use((ctx) => void (ctx.body = 'mine'))
      .callback(),
  Hono: (handler) =>
    getRequestListener(
      new Hono<{ Bindings: HttpBindings }>()
        .all('/hooks/*', ({ env }) => {
          handler().node(env.incoming, env.outgoing as ServerResponse)
          return RESPONSE_ALREADY_SENT
        })
        .all('*', (ctx) => ctx.text('mine')).fetch,
      // a test file leaves the globals as they are
      { overrideGlobalObjects: false },
    ),
}

describe.each(Object.entries(servers))('in a server of %s', (_, build) => {
  test('a request is stored and answered as on the own port, and other paths stay those of the host', async () => {
    const started: Hookloom[] = []
    // as: no request comes before the gateway has started
    const server = createServer(build(() => (started[0] as Hookloom).handler)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onFileEnd(() => server.close())
    // as: it listens on a port
    const mountedAt = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const dir = makeConfigDir()
    const gateway = await createHookloom({ dir, env: {}, write: () => {}, mountedAt })
    onFileEnd(() => gateway.stop())
    started.push(gateway)
    expect(gateway.url).toBe(`${mountedAt}/hooks`)
    const send = (token: string) =>
      fetch(`${gateway.url}/agent`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: '{"message":"Hello","deliver":false}',
      })
    const answer = await send(hookToken)
    expect([answer.status, await answer.json()]).toMatchObject([200, { ok: true, runId: expect.any(String) }])
    expect(await readNewestJob({ dir })).toMatchObject({ planned: { kind: 'agent' } })
    expect((await send('wrong')).status).toBe(401)
    expect(await (await fetch(`${mountedAt}/mine`)).text()).toBe('mine')
    const twoHosts = toRequest({
      target: '/hooks/agent',
      headers: [...bearer, ...json, ['host', 'one'], ['host', 'two']],
      body: '{"message":"Hello"}',
    })
    const { replies, closed } = await exchange(Number(new URL(mountedAt).port), twoHosts, { until: 'all' })
    expect([closed, replies.map(({ status }) => status), replies[0]?.body]).toEqual([
      true,
      [400],
      expect.stringContaining('Exactly one Host header is required.'),
    ])
    await gateway.stop()
    const late = await send(hookToken)
    expect([late.status, late.headers.get('connection'), await late.json()]).toMatchObject([
      503,
      'close',
      { ok: false },
    ])
    expect(await (await fetch(`${mountedAt}/mine`)).text()).toBe('mine')
  })
})
