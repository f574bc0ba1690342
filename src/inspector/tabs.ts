// One key for all tabs of a browser. A tab without a key asks the others, and a tab with a key answers after the gateway has proved itself anew: the
// tab that asks may be a page of another program that has taken the port. A BroadcastChannel reaches only pages of this scheme, name and port.
import { keepKey, readKey, verifyGateway } from './key.ts'

type Word =
  | { readonly kind: 'ask'; readonly id: string }
  | { readonly kind: 'key'; readonly id: string; readonly key: string }
  /** A tab has got a new key. */
  | { readonly kind: 'opened' }

const channel = new BroadcastChannel('hookloom-key')
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a BroadcastChannel has no other target than its own origin
const say = (word: Word) => channel.postMessage(word)
let asked = ''

/** Asks the other tabs for their key. */
export function askTabs(): void {
  asked = crypto.randomUUID()
  say({ kind: 'ask', id: asked })
}

/** Lets the other tabs ask for the key of this one. */
export const tellTabs = (): void => say({ kind: 'opened' })

/** Answers other tabs. `onKey` is called when this tab, which had no key, has got one. */
export function joinTabs(onKey: () => void): void {
  channel.addEventListener('message', ({ data }: MessageEvent<Word>) => {
    const key = readKey()
    if (data.kind === 'ask' && key !== null) void answer(data.id, key)
    if (data.kind === 'opened' && key === null) askTabs()
    if (data.kind === 'key' && data.id === asked && key === null && keepKey(data.key)) onKey()
  })
}

async function answer(id: string, key: string): Promise<void> {
  const isOwn = await verifyGateway(key).catch(() => false)
  if (isOwn) say({ kind: 'key', id, key })
}
