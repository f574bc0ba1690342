// The admin API, called with the key of this tab.
import { type AnyAsked, type Asked, type CallAnswer, type CallName, toRequest } from '../model/api/ask.ts'
import { forgetKey, verifyGateway, readKey } from './key.ts'

/** A refusal by the gateway, with the message of the gateway. */
export class ApiError extends Error {
  readonly status: number
  constructor(status: number, sentence: string) {
    super(sentence)
    this.status = status
  }
}

/** Called when the key is no longer valid. */
let onExpired: (why: string) => void = () => {}
export function onKeyExpired(listener: (why: string) => void): void {
  onExpired = listener
}

/**
 * Whether the gateway has proved, since the connection was last lost, that it issued the key. Undefined: no proof was asked for, so no key
 * may be sent.
 */
let proof: { readonly key: string; readonly isGiven: Promise<boolean> } | undefined

/** Called when the connection is lost: another program may have the port now. */
export function forgetGatewayProof(): void {
  proof = undefined
}

async function requireProof(key: string): Promise<void> {
  if (proof?.key !== key) proof = { key, isGiven: verifyGateway(key) }
  const asked = proof
  const isGiven = await asked.isGiven.catch((error: unknown) => {
    if (proof === asked) forgetGatewayProof()
    throw error
  })
  if (!isGiven) throw refuseKey('The key of this page is no longer valid.')
}

function refuseKey(sentence: string): ApiError {
  forgetKey()
  onExpired(sentence)
  return new ApiError(401, sentence)
}

export async function callApi(path: string, init: RequestInit = {}): Promise<Response> {
  const key = readKey() ?? ''
  await requireProof(key)
  const answer = await fetch(path, { ...init, headers: { ...init.headers, authorization: `Bearer ${key}` } }).catch(
    (error: unknown) => {
      forgetGatewayProof()
      throw error
    },
  )
  if (answer.ok) return answer
  const text = await answer.text()
  const sentence = readError(text) ?? `The gateway answered ${answer.status}.`
  // an act may be refused to the token that opened the page, and then the page may still be read
  const isRead = init.method === undefined || init.method === 'GET'
  throw answer.status === 401 && isRead ? refuseKey(sentence) : new ApiError(answer.status, sentence)
}

function readError(text: string): string | undefined {
  try {
    const body: { error?: string } = JSON.parse(text)
    return body.error
  } catch {
    return undefined
  }
}

type Signal = { readonly signal?: AbortSignal | undefined }

/** Blank query parameters are left out. */
export async function call<Name extends CallName>(
  name: Name,
  ...[given]: {} extends Asked<Name> ? [given?: Asked<Name> & Signal] : [given: Asked<Name> & Signal]
): Promise<CallAnswer<Name>> {
  const { signal, query = {}, ...asked }: AnyAsked & Signal = given ?? {}
  const filled = Object.fromEntries(new URLSearchParams(toQuery(query)))
  const { target, ...init } = toRequest(name, { ...asked, query: filled })
  const answer = await callApi(target, { ...init, ...(signal && { signal }) })
  // as: the gateway that serves this page sends the answers that model/api declares
  return (await answer.json()) as CallAnswer<Name>
}

/** A query string without its blank parameters. */
export function toQuery(fields: Readonly<Record<string, string | number | undefined>>): string {
  const filled = Object.entries(fields).filter(([, value]) => value !== undefined && value !== '')
  return new URLSearchParams(filled.map(([field, value]) => [field, String(value)])).toString()
}
