// Limits of time while garbage is collected: Node collects the timeout of `AbortSignal.any`, and the signal of a request that is handed to `fetch`.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { abortAfter } from '../../../src/base/time.ts'
import { createLimitedFetch } from '../../../src/plugins/sources/shared/fetch.ts'
import { type Loopback, startLoopback } from '../../e2e/fakes/loopback.ts'

let server: Loopback
let collecting: NodeJS.Timeout

beforeAll(async () => {
  server = await startLoopback(() => 'silence')
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collecting = setInterval(collect, 20)
})
afterAll(() => clearInterval(collecting))

const live = new AbortController()

describe('a request to a server that never answers', () => {
  test('ends after the time', async () => {
    const asked = fetch(server.url, { signal: abortAfter(300, live.signal) })
    await expect(asked).rejects.toMatchObject({ name: 'TimeoutError' })
  })

  test('ends with another signal, for its reason', async () => {
    const stopping = new AbortController()
    const asked = fetch(server.url, { signal: abortAfter(60_000, live.signal, stopping.signal) })
    setTimeout(() => stopping.abort(new Error('It stops.')), 300)
    await expect(asked).rejects.toThrow('It stops.')
  })

  test('of a source ends with the source', async () => {
    const stopping = new AbortController()
    const asked = createLimitedFetch(stopping.signal)(server.url)
    setTimeout(() => stopping.abort(new Error('It stops.')), 300)
    await expect(asked).rejects.toThrow('It stops.')
  })
})

test('a signal that was aborted before aborts at once', () => {
  const stopped = AbortSignal.abort(new Error('before'))
  expect(abortAfter(60_000, live.signal, stopped).reason).toEqual(new Error('before'))
})
