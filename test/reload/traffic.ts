// Sends requests at a steady rate while code is saved, and records the answers.
import { Agent, request } from 'node:http'
import type { Gateway } from '../e2e/gateway.ts'

/** `entry`, `helper`: the versions of the code that answered, from the session key `hook:<entry>:<helper>`; -1 without such a key. */
type Answer = {
  /** The status of the answer. 0 if no answer came. */
  readonly status: number
  readonly entry: number
  readonly helper: number
  /** The newest version in all answers before this request was sent. */
  readonly newest: number
}

export type Traffic = {
  readonly answers: readonly Answer[]
  /** Sends one request now. Never rejects. */
  send(): Promise<Answer>
  /** Starts to send this number of requests a second, without waiting for answers. */
  start(perSecond: number): void
  /** Stops sending. Resolves when every request is answered. */
  stop(): Promise<void>
}

export function createTraffic({ url, token }: Pick<Gateway, 'url' | 'token'>, hook: string): Traffic {
  // uses the connections in rotation: an idle connection is closed, and a request sent at that moment would fail
  const agent = new Agent({ keepAlive: true, maxSockets: 32, scheduling: 'fifo' })
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const answers: Answer[] = []
  const sent: Promise<Answer>[] = []
  let newest = 0
  let timer: NodeJS.Timeout | undefined

  async function send(): Promise<Answer> {
    const then = newest
    const { status, text } = await post().catch(() => ({ status: 0, text: '' }))
    const [, entry = '-1', helper = '-1'] = /"hook:(\d+):(\d+)"/.exec(text) ?? []
    const answer = { status, entry: Number(entry), helper: Number(helper), newest: then }
    newest = Math.max(newest, answer.entry)
    answers.push(answer)
    return answer
  }

  function post(): Promise<{ status: number; text: string }> {
    return new Promise((answered, failed) => {
      const asking = request(`${url}/${hook}`, { method: 'POST', agent, headers }, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
        response.once('end', () => answered({ status: response.statusCode ?? 0, text }))
        response.once('error', failed)
      })
      asking.once('error', failed)
      asking.end('{}')
    })
  }

  return {
    answers,
    send,
    start: (perSecond) => {
      timer = setInterval(() => void sent.push(send()), 1000 / perSecond)
    },
    stop: async () => {
      clearInterval(timer)
      await Promise.all(sent)
      agent.destroy()
    },
  }
}
