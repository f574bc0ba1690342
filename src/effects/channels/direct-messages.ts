// Opens direct messages with one person, for providers that require this before the first post.
import type { Failed } from './failure.ts'

export type Opened = { readonly kind: 'open'; readonly id: string } | Failed

const mostKept = 1_000

/** Opens each once and keeps its id while the process lives; the oldest is forgotten first. A failure is not kept. */
export function createDirectMessages(
  open: (person: string, signal: AbortSignal) => Promise<Opened>,
): (person: string, signal: AbortSignal) => Promise<Opened> {
  const kept = new Map<string, Opened>()
  return async (person, signal) => {
    const known = kept.get(person)
    if (known !== undefined) return known
    const opened = await open(person, signal)
    if (opened.kind === 'open') kept.set(person, opened)
    const [oldest] = kept.keys()
    if (kept.size > mostKept && oldest !== undefined) kept.delete(oldest)
    return opened
  }
}
