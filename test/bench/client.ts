// A client that sends webhooks over connections that stay open, and reads the answers.
import { appendFileSync } from 'node:fs'
import { Agent, request } from 'node:http'

export type Client = {
  /** Resolves with the status of the answer. Rejects if no answer comes. */
  post(path: string, payload: object): Promise<number>
}

/** `receipts`: a file that gets the id of each acknowledged delivery, one a line. */
export function createClient(options: { port: number; token: string; receipts?: string }): Client {
  const { port, token, receipts } = options
  const agent = new Agent({ keepAlive: true })
  let serial = 0
  return {
    post: (path, payload) =>
      new Promise((resolve, reject) => {
        serial += 1
        const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
        const sent = request({ host: '127.0.0.1', port, path, method: 'POST', agent, headers }, (answer) => {
          let text = ''
          answer.setEncoding('latin1').on('data', (chunk: string) => {
            text += chunk
          })
          answer.on('end', () => {
            const id = /"deliveryId":"([^"]+)"/.exec(text)?.[1]
            if (receipts !== undefined && id !== undefined) appendFileSync(receipts, `${id}\n`)
            resolve(answer.statusCode ?? 0)
          })
        })
        sent.on('error', reject)
        // all bodies differ: see events.ts
        sent.end(JSON.stringify({ ...payload, serial }))
      }),
  }
}
