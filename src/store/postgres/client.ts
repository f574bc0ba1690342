// One connection to Postgres. Its errors never end the process, and it can be destroyed at once.
import { Socket } from 'node:net'
import { Client, type ClientConfig } from 'pg'

/** How long the server may take to close a connection after the Terminate message. The network may have lost the connection. */
const goodbyeMs = 1_000

/** Throws if a file that the URL names, such as sslrootcert, cannot be read. */
export class DatabaseClient extends Client {
  /** The id of the server's process, as the client got it when the connection was made. */
  declare readonly processID: number | null
  readonly #socket: Socket

  constructor(config: ClientConfig) {
    // a socket that this process can destroy, also under TLS: a connection that the network lost cannot be closed
    const socket = new Socket()
    super({ ...config, stream: () => socket })
    this.#socket = socket
    // without a listener for errors, the process would end. The running statement and the next one reject in any case.
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
