// The key of this tab. A link of `hookloom open` has a code that works once; it is exchanged for a key, which stays in sessionStorage.
const name = 'hookloom-key'

/** Removes the code from the address before anything else runs: it must not stay in the history. */
export function takeCode(): string | undefined {
  const code = /^#k=([\w-]{20,100})$/.exec(location.hash)?.[1]
  if (code !== undefined) history.replaceState(null, '', '/')
  return code
}

/** Throws the sentence of the gateway if the code was used already, or is too old. */
export async function exchangeCode(code: string): Promise<void> {
  const answer = await fetch('/api/page/key', { method: 'POST', headers: { authorization: `Bearer ${code}` } })
  const body: { key?: string; error?: string } = await answer.json()
  if (answer.status !== 200 || body.key === undefined) throw new Error(body.error ?? 'The gateway gave no key.')
  sessionStorage.setItem(name, body.key)
}

export const readKey = (): string | null => sessionStorage.getItem(name)
export const forgetKey = (): void => sessionStorage.removeItem(name)
