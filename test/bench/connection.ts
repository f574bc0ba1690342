// A connection of the load: one request at a time over a raw socket with keep-alive. A client library would use more of the machine than the
// measured server does.
import { connect, type Socket } from 'node:net'

export type Connection = {
  /** `onAnswer` gets the whole answer, or a text that begins with `no answer`. A connection that the server has closed is opened again. */
  send(request: Buffer, onAnswer: (answer: string) => void): void
  close(): void
}

export function createConnection(port: number): Connection {
  let socket: Socket | undefined
  let waiting: ((answer: string) => void) | undefined
  let text = ''

  function finish(answer: string): void {
    const told = waiting
    waiting = undefined
    text = ''
    told?.(answer)
  }

  function lose(lost: Socket, reason: string): void {
    if (socket !== lost) return
    socket = undefined
    lost.destroy()
    finish(`no answer: ${reason}`)
  }

  function read(from: Socket, chunk: Buffer): void {
    if (socket !== from) return
    text += chunk.toString('latin1')
    const rest = countMissingBytes(text)
    if (rest > 0) return
    if (rest < 0) return lose(from, `more than one answer: ${text.slice(0, 600)}`)
    if (/\r\nconnection: close\r\n/i.test(text)) {
      socket = undefined
      from.destroy()
    }
    finish(text)
  }

  function open(): Socket {
    const made = connect({ port, host: '127.0.0.1', noDelay: true })
    made.on('data', (chunk) => read(made, chunk))
    made.on('error', (error) => lose(made, error.message))
    made.on('close', () => lose(made, 'the server closed the connection'))
    return made
  }

  return {
    send(request, onAnswer) {
      waiting = onAnswer
      socket ??= open()
      socket.write(request)
    },
    close() {
      if (socket !== undefined) lose(socket, 'the load ended')
    },
  }
}

/** The number of bytes of an answer that have not come yet. Negative if too many bytes came, or if the answer has no length. */
function countMissingBytes(text: string): number {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return 1
  if (text.startsWith('HTTP/1.1 204')) return end + 4 - text.length
  const length = /\r\ncontent-length: (\d+)\r\n/i.exec(text.slice(0, end + 2))?.[1]
  return length === undefined ? -1 : end + 4 + Number(length) - text.length
}
