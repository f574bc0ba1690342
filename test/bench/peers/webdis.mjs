// node webdis.mjs <unused> <directory> <port>: HTTP in front of its own Redis, which appends each body to a file and syncs it.
import { spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

const [, dir, port] = process.argv.slice(2)
const socket = join(dir, 'redis.sock')
const always = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', '']
const redis = spawn('redis-server', ['--port', '0', '--unixsocket', socket, '--dir', dir, ...always], {
  stdio: 'inherit',
})
redis.once('exit', (code) => process.exit(code ?? 1))
while (!existsSync(socket)) await pause(50)
const config = {
  redis_host: socket,
  redis_port: 0,
  http_host: '127.0.0.1',
  http_port: Number(port),
  threads: 2,
  daemonize: false,
  database: 0,
  // the maximum number of bytes of a request
  http_max_request_size: 16 * 1024 * 1024,
  verbosity: 1,
  logfile: join(dir, 'webdis.log'),
}
writeFileSync(join(dir, 'webdis.json'), JSON.stringify(config))
const webdis = spawn('webdis', [join(dir, 'webdis.json')], { stdio: 'inherit' })
webdis.once('exit', (code) => process.exit(code ?? 1))
