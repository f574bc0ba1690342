// One connection to Postgres. Its errors never end the process, and it can be given up at once.
import { Socket } from 'node:net'
import { Client, type ClientConfig } from 'pg'

/** The time in which the server should close a connection after the goodbye. The network may have lost the connection. */
const goodbyeMs = 1_000

/** Throws if a file that the URL names, such as sslrootcert, cannot be read. */
export class DatabaseClient extends Client {
  readonly #socket: Socket

  constructor(config: ClientConfig) {
    // its own socket, also under TLS: a connection that the network lost can only be destroyed
    const socket = new Socket()
    super({ ...config, stream: () => socket })
    this.#socket = socket
    // the statement that runs rejects, and so does the next one: without a listener, the process would end
    this.on('error', () => {})
  }

  /** Closes the connection at once: the statements on it reject. */
  destroy(): void {
    this.#socket.destroy()
  }

  override end(): Promise<void>
  override end(callback: (error: Error) => void): void
  override end(callback?: (error: Error) => void): Promise<void> | void {
    const late = setTimeout(() => this.destroy(), goodbyeMs).unref()
    this.#socket.once('close', () => clearTimeout(late))
    return callback === undefined ? super.end() : super.end(callback)
  }
}
