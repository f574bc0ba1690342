// Whether a balancer may send requests here. A gateway that stops becomes unready first, and serves until its balancers know.
import type { IncomingMessage } from 'node:http'
import type { Log } from '../../base/log.ts'
import type { createPeerLookup } from './client.ts'
import type { Store } from '../../store/store.ts'

/** A balancer may need three failed checks before it sends nothing more to a gateway. */
const enoughAnswers = 3
/** A balancer that has sent no check for this long, and for longer than a stop may wait, counts as gone. */
const forgottenMs = 30_000
const maxBalancers = 64

export type Readiness = {
  isStopping(): boolean
  /** Whether this gateway takes requests. Undefined if the check does not come from one of `server.trustedProxies` itself. */
  check(req: Pick<IncomingMessage, 'headers' | 'socket'>): Promise<boolean | undefined>
  /**
   * This gateway is unready from now on. Resolves when every balancer that sends checks has got this answer three times, at the latest after
   * `limitMs`.
   */
  retire(limitMs: number): Promise<void>
}

export function createReadiness(parts: {
  readonly store: Pick<Store, 'health'>
  /** The client of a connection; undefined for a trusted proxy. */
  readonly peerOf: ReturnType<typeof createPeerLookup>
  readonly log: Log
}): Readiness {
  const { store, peerOf, log } = parts
  /** The balancers by address: when each sent its last check, and how often the answer was that this gateway stops. */
  const balancers = new Map<string, { askedAt: number; unreadyAnswers: number }>()
  let isRetiring = false
  let endWait = () => {}

  const isWaiting = () => [...balancers.values()].some(({ unreadyAnswers }) => unreadyAnswers < enoughAnswers)

  function noteCheck(address: string, isUnready: boolean): void {
    const known = balancers.get(address)
    balancers.delete(address)
    const oldest = balancers.keys().next()
    if (balancers.size >= maxBalancers && !oldest.done) balancers.delete(oldest.value)
    balancers.set(address, {
      askedAt: performance.now(),
      unreadyAnswers: (known?.unreadyAnswers ?? 0) + (isUnready ? 1 : 0),
    })
  }

  return {
    isStopping: () => isRetiring,
    async check({ headers, socket }) {
      // a request that a balancer forwards is not a check of the balancer
      if (peerOf(socket.remoteAddress) !== undefined || headers['x-forwarded-for'] !== undefined) return undefined
      const { trouble } = await store.health()
      // the state is read after the wait, because a stop may have begun since then
      noteCheck(socket.remoteAddress ?? '', isRetiring)
      if (isRetiring && !isWaiting()) endWait()
      return !isRetiring && trouble === undefined
    },
    async retire(limitMs) {
      isRetiring = true
      for (const [address, { askedAt }] of balancers) {
        if (performance.now() - askedAt > Math.max(forgottenMs, limitMs)) balancers.delete(address)
      }
      if (!isWaiting()) return
      log.info({ balancers: balancers.size }, 'unready; waiting until the balancers know')
      await new Promise<void>((resolve) => {
        const timer = setTimeout(() => {
          log.warn(
            { limitMs },
            'a balancer did not ask in time; increase server.stopTimeoutMs, or let it check more often',
          )
          resolve()
        }, limitMs)
        endWait = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    },
  }
}
