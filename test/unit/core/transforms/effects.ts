/**
 * A module that tries to have effects. Its payload has the URL and the port of a server, a folder, and `at` to try only one effect. For each
 * attempt, its result is `blocked`, `done`, or another error.
 */
export const tryEffects = `import * as child from 'node:child_process'
import * as dgram from 'node:dgram'
import * as dns from 'node:dns'
import fs, { writeFileSync, promises } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import http, { request } from 'node:http'
import * as http2 from 'node:http2'
import { connect, createServer, Socket } from 'node:net'
import { createRequire } from 'node:module'
import tls from 'node:tls'
import { Worker } from 'node:worker_threads'

const ended = (emitter, ...names) => new Promise((done, fail) => {
  for (const name of names) emitter.once(name, done)
  emitter.once('error', fail)
})
const attempts = ({ url, port, folder }) => {
  const file = (name) => folder + '/effect-' + name
  return {
    fetch: async () => (await fetch(url)).text(),
    'http.get': () => ended(http.get(url), 'response'),
    'http.request': () => { const one = request(url); one.end(); return ended(one, 'response') },
    'http2.connect': () => { const one = http2.connect(url); const end = ended(one, 'connect', 'close'); one.unref(); return end.finally(() => one.destroy()) },
    'net.connect': () => { const one = connect(port, '127.0.0.1'); return ended(one, 'connect').finally(() => one.destroy()) },
    'new Socket': () => { const one = new Socket(); one.connect(port, '127.0.0.1'); return ended(one, 'connect').finally(() => one.destroy()) },
    'tls.connect': async () => { const one = tls.connect(port, '127.0.0.1'); await ended(one, 'secureConnect').catch((e) => { if (String(e.message).includes('has an effect')) throw e }); one.destroy() },
    'net.listen': () => { const one = createServer(); one.listen(0); return ended(one, 'listening').finally(() => one.close()) },
    'dgram.send': () => { const one = dgram.createSocket('udp4'); return new Promise((done, fail) => one.send('x', port, '127.0.0.1', (e) => e ? fail(e) : done())).finally(() => one.close()) },
    'dns.lookup': () => new Promise((done, fail) => dns.lookup('localhost', (e) => e ? fail(e) : done())),
    'dns.promises': () => dns.promises.lookup('localhost'),
    'fs.writeFileSync': () => writeFileSync(file('a'), 'x'),
    'fs default': () => fs.writeFileSync(file('b'), 'x'),
    'fs.promises': () => promises.writeFile(file('c'), 'x'),
    'fs/promises': () => writeFile(file('d'), 'x'),
    'fs.openSync': () => fs.closeSync(fs.openSync(file('e'), 'w')),
    'fs.promises.open': async () => (await promises.open(file('f'), 'a')).close(),
    'fs.createWriteStream': () => { const one = fs.createWriteStream(file('g')); one.end('x'); return ended(one, 'finish') },
    'fs.createReadStream with a flag': () => { const one = fs.createReadStream(file('m'), { flags: 'w+' }); return ended(one, 'open').finally(() => one.destroy()) },
    'new fs.ReadStream with a flag': () => { const one = new fs.ReadStream(file('n'), { flags: 'a+' }); return ended(one, 'open').finally(() => one.destroy()) },
    'fs.readFileSync with a flag': () => fs.readFileSync(file('o'), { flag: 'w+' }),
    'fs.readFile with a flag': () => new Promise((done, fail) => fs.readFile(file('p'), { flag: fs.constants.O_CREAT }, (e) => e ? fail(e) : done())),
    'fs.promises.readFile with a flag': () => promises.readFile(file('q'), { flag: 'a+' }),
    'fs.mkdirSync': () => fs.mkdirSync(file('h')),
    'require fs': () => createRequire(file('i'))('fs').appendFileSync(file('i'), 'x'),
    'import fs': async () => (await import('node:fs')).copyFileSync('/dev/null', file('j')),
    'child.spawnSync': () => { const { error } = child.spawnSync('touch', [file('k')]); if (error) throw error },
    'child.exec': () => new Promise((done, fail) => child.exec('touch ' + file('l'), (e) => e ? fail(e) : done())),
    'child.fork': () => { const one = child.fork('/dev/null'); return ended(one, 'exit') },
    Worker: () => { const one = new Worker('', { eval: true }); return ended(one, 'exit') },
    BroadcastChannel: () => new BroadcastChannel('x').close(),
  }
}
const describe = (error) => {
  for (let each = error; each instanceof Error || each?.message; each = each.cause) if (String(each.message).includes('has an effect')) return 'blocked'
  return String(error?.message ?? error)
}
export default async ({ payload }) => {
  const results = {}
  const all = Object.entries(attempts(payload))
  for (const [name, attempt] of payload.at === undefined ? all : [all[payload.at % all.length]]) {
    try {
      await attempt()
      results[name] = 'done'
    } catch (error) {
      results[name] = describe(error)
    }
  }
  return results
}
`
