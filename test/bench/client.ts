// A client that sends webhooks over connections that stay open, and reads the answers.
import { Agent, request } from 'node:http'

export type Client = {
  /** Resolves with the status of the answer. Rejects if no answer comes. */
  post(path: string, payload: object): Promise<number>
}

export function createClient({ port, token }: { port: number; token: string }): Client {
  const agent = new Agent({ keepAlive: true })
  let serial = 0
  return {
    post: (path, payload) =>
      new Promise((resolve, reject) => {
        serial += 1
        const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
        const sent = request({ host: '127.0.0.1', port, path, method: 'POST', agent, headers }, (answer) => {
          answer.resume()
          answer.on('end', () => resolve(answer.statusCode ?? 0))
        })
        sent.on('error', reject)
        // all bodies differ: see events.ts
        sent.end(JSON.stringify({ ...payload, serial }))
      }),
  }
}
