// node durable-streams.mjs <folder of the packages> <directory> <port>: appends each body to one stream of the Durable Streams server.
import { createRequire } from 'node:module'
import { join } from 'node:path'

const [folder, dir, port] = process.argv.slice(2)
const { DurableStreamTestServer } = createRequire(join(folder, 'index.js'))('@durable-streams/server')
const server = new DurableStreamTestServer({ port: Number(port), host: '127.0.0.1', dataDir: join(dir, 'streams') })
await server.start()
await fetch(`http://127.0.0.1:${port}/hooks/bench`, {
  method: 'PUT',
  headers: { 'content-type': 'application/json' },
})
