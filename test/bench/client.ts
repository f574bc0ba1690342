// A client that sends one webhook at a time and reads the answer.
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
        // each body differs, because a repeated event is dropped
        sent.end(JSON.stringify({ ...payload, serial }))
      }),
  }
}
