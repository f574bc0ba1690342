// node restate.mjs <folder of the packages> <directory> <port> [URL]: a Restate server, and a service that does nothing, or posts its input to a
// URL. Restate answers a request to its ingress when it has stored the invocation, and then runs it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

const [folder, dir, port, effect] = process.argv.slice(2)
const restate = createRequire(join(folder, 'index.js'))('@restatedev/restate-sdk')
const [service, admin, node] = await Promise.all([findPort(), findPort(), findPort()])

await restate.serve({
  services: [restate.service({ name: 'Bench', handlers: { accept } })],
  port: service,
})
const child = spawn(
  join(folder, 'node_modules/.bin/restate-server'),
  ['--no-logo', '--base-dir', join(dir, 'restate')],
  {
    stdio: 'inherit',
    env: {
      ...process.env,
      RESTATE_LISTEN_MODE: 'tcp',
      RESTATE_DISABLE_TELEMETRY: 'true',
      RESTATE_BIND_ADDRESS: `127.0.0.1:${node}`,
      RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
      RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${port}`,
    },
  },
)
child.once('exit', (code) => process.exit(code ?? 1))
for (let isRegistered = false; !isRegistered; await pause(200)) isRegistered = await register()

async function accept(_, input) {
  if (effect === undefined) return { ok: true }
  const answer = await fetch(effect, { method: 'POST', body: JSON.stringify(input) })
  if (!answer.ok) throw new Error(`It answered ${answer.status}.`)
  return await answer.text()
}

async function register() {
  const answer = await fetch(`http://127.0.0.1:${admin}/deployments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ uri: `http://127.0.0.1:${service}` }),
  }).catch(() => undefined)
  return answer?.ok === true
}

async function findPort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const found = server.address().port
  server.close()
  await once(server, 'close')
  return found
}
