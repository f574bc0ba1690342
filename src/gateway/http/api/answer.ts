// Answers of the admin API: JSON with the field `ok`, never cached.
import type { Context } from 'koa'
import { sendAnswer } from '../server.ts'

export function answerJson(ctx: Context, body: object, status = 200): void {
  answerText(ctx, JSON.stringify({ ok: true, ...body }), status)
}

/** `body`: JSON. */
export function answerText(ctx: Context, body: string, status = 200): void {
  ctx.set('cache-control', 'no-store')
  sendAnswer(ctx, { status, body })
}
