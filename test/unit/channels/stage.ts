// A message for a channel, and a provider with one answer.
import type { Outgoing } from '../../../src/model/channel.ts'

/** A message of a run, with the given fields. */
export function toOutgoing(given: Partial<Outgoing> = {}): Outgoing {
  return {
    to: undefined,
    text: 'The build is green.',
    format: 'markdown',
    nonce: 'nonce-1',
    signal: new AbortController().signal,
    run: { id: 'run-1', agentId: 'main', name: 'CI', hops: 1 },
    ...given,
  }
}

/** A fetch with the same answer for every request. */
export function createFetch(status: number, body: unknown, headers: Record<string, string> = {}): typeof fetch {
  return async () => new Response(JSON.stringify(body), { status, headers })
}
