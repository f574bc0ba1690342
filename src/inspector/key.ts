// The key of this tab. A link of `hookloom open` has a code that works once. The page exchanges the code for a key, which stays in
// sessionStorage.
const name = 'hookloom-key'

/** Removes the code from the address, and so from the history, before any other code of the page runs. */
export function takeCode(): string | undefined {
  const code = /^#k=([\w-]{20,100})$/.exec(location.hash)?.[1]
  if (code !== undefined) history.replaceState(null, '', '/')
  return code
}

/** Throws the gateway's message if the code was used already or is too old. */
export async function exchangeCode(code: string): Promise<void> {
  const answer = await fetch('/api/page/key', { method: 'POST', headers: { authorization: `Bearer ${code}` } })
  const body: { key?: string; error?: string } = await answer.json()
  if (answer.status !== 200 || body.key === undefined) throw new Error(body.error ?? 'The gateway gave no key.')
  sessionStorage.setItem(name, body.key)
}

export const readKey = (): string | null => sessionStorage.getItem(name)
export const forgetKey = (): void => sessionStorage.removeItem(name)

const keyForm = /^hlk_([\w-]{64})$/
const publicBytes = 16

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
    body: JSON.stringify({ key: toHex(bytes.slice(0, publicBytes)), challenge }),
  })
  const { proof }: { proof?: string } = await answer.json()
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const signature = await crypto.subtle.importKey('raw', bytes.slice(publicBytes), algorithm, false, ['sign'])
  const expected = await crypto.subtle.sign('HMAC', signature, new TextEncoder().encode(`proof ${challenge}`))
  return proof === toHex(new Uint8Array(expected))
}

function toHex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}
