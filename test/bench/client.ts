// One who sends a webhook at a time and reads what comes back.
import { Agent, request } from 'node:http'

export type Client = {
  /** The status. Rejects when nothing comes. */
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
        // no two alike: the same event twice is one
        sent.end(JSON.stringify({ ...payload, serial }))
      }),
  }
}
