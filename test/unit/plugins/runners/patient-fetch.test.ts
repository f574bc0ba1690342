import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { limitSilence, fetchWithoutTimeout } from '../../../../src/plugins/runners/shared/ai/fetch.ts'

let server: Server | undefined

afterEach(async () => {
  if (server === undefined) return
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
})

async function startServer(listener: RequestListener): Promise<string> {
  server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  // as: a server that listens on a port has an address of this type
  const { port } = server.address() as AddressInfo
  return `http://127.0.0.1:${port}`
}

describe('a fetch without time limits', () => {
  test('a fetch sends method, headers and text, and returns status, headers and body', async () => {
    const url = await startServer((request, response) => {
      const { method, url: path, headers } = request
      response.writeHead(201, { 'x-seen': `${method} ${path} ${headers['x-key']}` })
      request.pipe(response)
    })
    const answer = await fetchWithoutTimeout(`${url}/v1?a=b`, {
      method: 'POST',
      headers: { 'X-Key': 'k' },
      body: 'grüße',
    })
    expect([answer.status, answer.ok, answer.headers.get('x-seen')]).toEqual([201, true, 'POST /v1?a=b k'])
    expect(await answer.text()).toBe('grüße')
  })

  test('a fetch streams the body while it arrives', async () => {
    let finish = () => {}
    const url = await startServer((_, response) => {
      response.write('first')
      finish = () => response.end(' second')
    })
    const answer = await fetchWithoutTimeout(url)
    const reader = answer.body?.getReader()
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('first')
    finish()
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe(' second')
    expect((await reader?.read())?.done).toBe(true)
  })

  test('a fetch follows no redirect, so the key reaches no other host', async () => {
    const seen: (string | undefined)[] = []
    const url = await startServer((request, response) => {
      seen.push(request.url)
      response.writeHead(307, { location: '/elsewhere' }).end()
    })
    expect((await fetchWithoutTimeout(url, { method: 'POST', body: '{}' })).status).toBe(307)
    expect(seen).toEqual(['/'])
  })

  test('an answer without a body is a valid answer', async () => {
    const url = await startServer((_, response) => void response.writeHead(204).end())
    const answer = await fetchWithoutTimeout(url)
    expect([answer.status, await answer.text()]).toEqual([204, ''])
  })

  test('the read of an answer fails if the connection breaks', async () => {
    const url = await startServer((_, response) => void response.write('half', () => response.socket?.destroy()))
    const answer = await fetchWithoutTimeout(url)
    await expect(answer.text()).rejects.toMatchObject({ code: 'ECONNRESET' })
  })

  test('a cancelled body closes the connection', async () => {
    let closed: Promise<unknown> = Promise.resolve()
    const url = await startServer((request, response) => {
      closed = once(request.socket, 'close')
      response.write('on and on')
    })
    const answer = await fetchWithoutTimeout(url)
    await answer.body?.cancel()
    await expect(closed).resolves.toBeDefined()
  })

  test('a fetch with an aborted signal sends no request', async () => {
    const seen: unknown[] = []
    const url = await startServer((request) => void seen.push(request.url))
    await expect(fetchWithoutTimeout(url, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: 'AbortError',
    })
    expect(seen).toEqual([])
  })
})

describe('a fetch with a limit on silence', () => {
  const limits = { firstMs: 60_000, betweenMs: 60_000 }

  test('a stalled response is aborted, and is reported as stalled rather than missing', async () => {
    const url = await startServer((_, response) => void response.write('half'))
    const watched = limitSilence(fetchWithoutTimeout, { ...limits, betweenMs: 50 })
    await expect(watched.fetch(url).then((answer) => answer.text())).rejects.toThrow(/abort|nothing/)
    expect(watched.silence()).toBe('stopped')
  })

  test('response headers without a body do not count as the first byte', async () => {
    const url = await startServer((_, response) => response.flushHeaders())
    const watched = limitSilence(fetchWithoutTimeout, { ...limits, firstMs: 200 })
    await expect(watched.fetch(url).then((answer) => answer.text())).rejects.toThrow(/abort|nothing/)
    expect(watched.silence()).toBe('no answer')
  })

  test('an answer whose bytes arrive in time is complete, and the caller’s signal can still abort it', async () => {
    const url = await startServer((request, response) => {
      if (request.url === '/on') response.write('on and on')
      else response.end('whole')
    })
    const watched = limitSilence(fetchWithoutTimeout, limits)
    expect(await (await watched.fetch(url)).text()).toBe('whole')
    const stop = new AbortController()
    const answer = await watched.fetch(`${url}/on`, { signal: stop.signal })
    stop.abort()
    await expect(answer.text()).rejects.toThrow('abort')
    expect(watched.silence()).toBeUndefined()
  })
})
