// What a channel is handed in a test: a message, and a provider that gives one answer.
import type { Outgoing } from '../../../src/model/channel.ts'

/** A message of one run; what a test is about is given. */
export function toOutgoing(given: Partial<Outgoing> = {}): Outgoing {
  return {
    to: undefined,
    text: 'The build is green.',
    nonce: 'nonce-1',
    signal: new AbortController().signal,
    run: { id: 'run-1', agentId: 'main', name: 'CI' },
    ...given,
  }
}

/** A fetch that answers every request so. */
export function answering(status: number, body: unknown, headers: Record<string, string> = {}): typeof fetch {
  return async () => new Response(JSON.stringify(body), { status, headers })
}
