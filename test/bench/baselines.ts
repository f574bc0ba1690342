// The baselines of the bench: the smallest servers that answer such requests, without a store, or with a row or a line for each request.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { fdatasyncSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { Router } from '@koa/router'
import { DatabaseSync } from '@photostructure/sqlite'
import Koa from 'koa'

/** The bare server: reads, parses and answers. It checks no token, renders no template, and keeps nothing. */
export function createBareHttp(): Server {
  return createServer((req, res) => {
    void answerWithText(req, res)
  })
}

async function answerWithText(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const answer = renderAnswer(await readJson(req))
  res.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length })
  res.end(answer)
}

/** The bare server, with Koa and its router in front. */
export function createBareKoa(): Server {
  return createJsonServer(async (req) => renderAnswer(await readJson(req)))
}

/** The bare server, which also commits a row on the main thread for each request before its 200. `delayMs`: simulates a slower disk. */
export function createInsertEach({ dir, delayMs }: { dir: string; delayMs: number }): Server {
  const db = new DatabaseSync(join(dir, 'each.db'))
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  db.exec('CREATE TABLE deliveries (seq INTEGER PRIMARY KEY, at INTEGER, hook TEXT, text TEXT) STRICT')
  const insert = db.prepare('INSERT INTO deliveries (at, hook, text) VALUES (?, ?, ?)')
  const sleeper = new Int32Array(new SharedArrayBuffer(4))
  return createJsonServer(async (req) => {
    const event = await readJson(req)
    db.exec('BEGIN IMMEDIATE')
    insert.run(Date.now(), 'bench', renderText(event))
    if (delayMs > 0) Atomics.wait(sleeper, 0, 0, delayMs)
    db.exec('COMMIT')
    return renderAnswer(event)
  })
}

/** The bare server, which also appends a line and syncs it for each request before its 200. */
export function createAppendEach({ dir }: { dir: string }): Server {
  const file = openSync(join(dir, 'each.jsonl'), 'a')
  return createJsonServer(async (req) => {
    const event = await readJson(req)
    writeSync(file, `${JSON.stringify({ at: Date.now(), hook: 'bench', text: renderText(event) })}\n`)
    fdatasyncSync(file)
    return renderAnswer(event)
  })
}

function createJsonServer(handle: (req: IncomingMessage) => Promise<string>): Server {
  const app = new Koa()
  const router = new Router()
  router.post('/hooks/bench', async (ctx) => {
    ctx.type = 'application/json'
    ctx.body = await handle(ctx.req)
  })
  app.use(router.routes())
  return createServer(app.callback())
}

type Event = { action: string; issue: { number: number; title: string; html_url: string }; sender: { login: string } }

function readJson(req: IncomingMessage): Promise<Event> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('error', reject)
    // as: events.ts made the body
    req.on('end', () => resolve(JSON.parse(Buffer.concat(chunks).toString('utf8')) as Event))
  })
}

function renderText({ action, issue, sender }: Event): string {
  return `${action} #${issue.number} ${issue.title} by ${sender.login}: ${issue.html_url}`
}

function renderAnswer({ issue }: Event): string {
  return JSON.stringify({ ok: true, deliveryId: issue.number, mode: 'next-heartbeat' })
}
