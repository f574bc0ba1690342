// Creates, lists and revokes tokens with few rights.
import { z } from 'zod'
import { askAdmin } from './gateway/gateway.ts'
import { parseUntil } from './pause.ts'
import type { Context } from './terminal/context.ts'
import { cutLine, formatTime, printTable } from './terminal/print.ts'

const Token = z.object({
  name: z.string(),
  from: z.string(),
  may: z.array(z.string()),
  createdAt: z.string().nullable(),
  expiresAt: z.string().nullable(),
  expired: z.boolean(),
})
type Token = z.infer<typeof Token>

export type TokenOptions = { readonly may: readonly string[]; readonly expires?: string }

export async function tokenNew(context: Context, name: string, { may, expires }: TokenOptions): Promise<number> {
  const expiresAt = expires === undefined ? undefined : parseUntil('--expires', expires, Date.now())
  const made = await askAdmin(context, {
    method: 'POST',
    path: '/api/tokens',
    body: { name, may, expiresAt },
    answer: Token.extend({ token: z.string() }),
  })
  const { token, ...fields } = made
  if (context.json) context.printJson({ token, ...fields })
  else {
    context.print(token)
    context.note(`This is the only time that the token is shown. It may: ${may.join(', ')}. ${describeEnd(fields)}`)
  }
  return 0
}

export async function tokenList(context: Context): Promise<number> {
  const answer = z.object({ tokens: z.array(Token) })
  const { tokens } = await askAdmin(context, { method: 'GET', path: '/api/tokens', answer })
  if (context.json) for (const each of tokens) context.printJson(each)
  else if (tokens.length === 0) context.print('There are no tokens with few rights. "hookloom token new" makes one.')
  else printTable(context, ['name', 'may', 'from', 'expires'], tokens.map(toCells))
  return 0
}

export async function tokenRevoke(context: Context, name: string): Promise<number> {
  const path = `/api/tokens/${encodeURIComponent(name)}/revoke`
  const revoked = await askAdmin(context, { method: 'POST', path, answer: z.object({ name: z.string() }) })
  if (context.json) context.printJson({ name: revoked.name })
  else context.print(`${cutLine(revoked.name, 100)} is revoked. Within a second, no gateway on the store accepts it.`)
  return 0
}

function toCells({ name, may, from, expiresAt, expired }: Token): string[] {
  const end = expiresAt === null ? 'never' : `${expired ? 'expired ' : ''}${formatTime(Date.parse(expiresAt))}`
  return [name, cutLine(may.join(' '), 80), from, end]
}

function describeEnd({ expiresAt }: Pick<Token, 'expiresAt'>): string {
  return expiresAt === null ? 'It does not expire.' : `It expires at ${formatTime(Date.parse(expiresAt))}.`
}
