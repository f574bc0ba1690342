// Creates, lists and revokes tokens with few rights.
import type { TokenFields } from '../model/api/operations.ts'
import { askAdmin } from './gateway/gateway.ts'
import { parseUntil } from './pause.ts'
import type { Context } from './terminal/context.ts'
import { cutLine, formatTime, printTable } from './terminal/print.ts'

export type TokenOptions = { readonly may: readonly string[]; readonly expires?: string }

export async function tokenNew(context: Context, name: string, { may, expires }: TokenOptions): Promise<number> {
  const expiresAt = expires === undefined ? undefined : parseUntil('--expires', expires, Date.now())
  const { token, ...fields } = await askAdmin(context, 'POST /api/tokens', { body: { name, may: [...may], expiresAt } })
  if (context.json) context.printJson({ token, ...fields })
  else {
    context.print(token)
    context.note(`This is the only time that the token is shown. It may: ${may.join(', ')}. ${describeEnd(fields)}`)
  }
  return 0
}

export async function tokenList(context: Context): Promise<number> {
  const { tokens } = await askAdmin(context, 'GET /api/tokens')
  if (context.json) for (const each of tokens) context.printJson(each)
  else if (tokens.length === 0) context.print('There are no tokens with few rights. "hookloom token new" makes one.')
  else printTable(context, ['name', 'may', 'from', 'expires'], tokens.map(toCells))
  return 0
}

export async function tokenRevoke(context: Context, name: string): Promise<number> {
  const revoked = await askAdmin(context, 'POST /api/tokens/{name}/revoke', { params: { name } })
  if (context.json) context.printJson({ name: revoked.name })
  else context.print(`${cutLine(revoked.name, 100)} is revoked. Within a second, no gateway on the store accepts it.`)
  return 0
}

function toCells({ name, may, from, expiresAt, expired }: TokenFields): string[] {
  const end = expiresAt === null ? 'never' : `${expired ? 'expired ' : ''}${formatTime(Date.parse(expiresAt))}`
  return [name, cutLine(may.join(' '), 80), from, end]
}

function describeEnd({ expiresAt }: Pick<TokenFields, 'expiresAt'>): string {
  return expiresAt === null ? 'It does not expire.' : `It expires at ${formatTime(Date.parse(expiresAt))}.`
}
