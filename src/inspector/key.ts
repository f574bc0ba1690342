// The key of this tab. A link of `hookloom open` has a code that works once. The page exchanges the code, or a token that a person gives, for a key.
// It stays in sessionStorage, and goes to other tabs only through `tabs.ts`.
const name = 'hookloom-key'

/**
 * Removes the code from the address, and so from the history, before any other code of the page runs. The place that the link points to stays, or
 * else `before`, the place that the page showed.
 */
export function takeCode(before = ''): string | undefined {
  const found = readLink(location.hash)
  if (found === undefined) return undefined
  history.replaceState(null, '', `/${found.place || before}`)
  return found.code
}

/** The code of a link or of its fragment, and the place that it points to. Undefined without a code. */
export function readLink(link: string): { readonly code: string; readonly place: string } | undefined {
  const fields = new URLSearchParams(link.replace(/^[^#]*#?/, ''))
  const code = /^[\w-]{20,100}$/.exec(fields.get('k') ?? '')?.[0]
  if (code === undefined) return undefined
  fields.delete('k')
  const place = fields.toString()
  return { code, place: place === '' ? '' : `#${place}` }
}

/** `code`: the code of a link, or a token. Throws the gateway's message if the code was used already or is too old. */
export async function exchangeCode(code: string): Promise<void> {
  const answer = await fetch('/api/page/key', { method: 'POST', headers: { authorization: `Bearer ${code}` } })
  const body: { key?: string; error?: string } = await answer.json()
  if (answer.status !== 200 || body.key === undefined) throw new Error(body.error ?? 'The gateway gave no key.')
  keepKey(body.key)
}

/** The keys that the gateway refused: another tab may still have one of them. */
const refused = new Set<string>()

export const readKey = (): string | null => sessionStorage.getItem(name)
export const forgetKey = (): void => {
  refused.add(readKey() ?? '')
  sessionStorage.removeItem(name)
}
/** Returns whether the key can be used. */
export function keepKey(key: string): boolean {
  if (!keyForm.test(key) || refused.has(key)) return false
  sessionStorage.setItem(name, key)
  return true
}

const keyForm = /^hlk_([\w-]{64,128})$/
const signatureBytes = 32

/**
 * Whether the program on this port is the gateway that issued the key: another program may have taken the port while the gateway was down.
 * The key is not revealed. It consists of a public part and of the gateway's signature of this part; to prove itself, the gateway signs a
 * random text with this signature.
 */
export async function verifyGateway(key: string): Promise<boolean> {
  const text = keyForm.exec(key)?.[1]
  if (text === undefined) return false
  const bytes = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (each) => each.charCodeAt(0))
  const challenge = toHex(crypto.getRandomValues(new Uint8Array(32)))
  const answer = await fetch('/api/page/proof', {
    method: 'POST',
    body: JSON.stringify({ key: toHex(bytes.slice(0, -signatureBytes)), challenge }),
  })
  const { proof }: { proof?: string } = await answer.json()
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const signature = await crypto.subtle.importKey('raw', bytes.slice(-signatureBytes), algorithm, false, ['sign'])
  const expected = await crypto.subtle.sign('HMAC', signature, new TextEncoder().encode(`proof ${challenge}`))
  return proof === toHex(new Uint8Array(expected))
}

function toHex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}
