// A fake model that answers after a time, and writes down when each turn began and ended.
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

export type TimedModel = {
  readonly url: string
  /** When the first call of each turn came, by the name in its message: `work [name]`. */
  readonly starts: ReadonlyMap<string, number>
  readonly ends: readonly { readonly name: string; readonly at: number }[]
  readonly calls: number
  close(): Promise<void>
}

const completion = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  created: 0,
  model: 'slow',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Done.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
})

/** `gate`: no call is answered before it. */
export async function startTimedModel(
  pickTurnMs: () => number,
  gate: Promise<unknown> = Promise.resolve(),
): Promise<TimedModel> {
  const starts = new Map<string, number>()
  const ends: { name: string; at: number }[] = []
  let calls = 0
  const server = createServer(async (request, response) => {
    const name = await readTurnName(request)
    calls += 1
    if (!starts.has(name)) starts.set(name, performance.now())
    await gate
    setTimeout(() => {
      ends.push({ name, at: performance.now() })
      response.setHeader('content-type', 'application/json').end(completion)
    }, pickTurnMs())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  // as: a server that listens on a port has this address
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/v1`,
    starts,
    ends,
    get calls() {
      return calls
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function readTurnName(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer) // as: a request without an encoding
  return /work \[(\w+\.\d+)\]/.exec(Buffer.concat(chunks).toString('utf8'))?.[1] ?? 'unknown'
}
