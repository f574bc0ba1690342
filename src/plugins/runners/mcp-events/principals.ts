// Who may call the server: the subscribers of the configuration, each by its token.
import { hash, timingSafeEqual } from 'node:crypto'
import type { EventServerConfig } from './options.ts'
import { rpcCodes, RpcFailure } from './rpc.ts'
import { createSealer, type Sealer } from './sealed.ts'

export type Principal = {
  readonly name: string
  /** The events that it may receive, by name. */
  readonly events: readonly string[]
  readonly privateCallbacks: boolean
  readonly sealer: Sealer
  /** Throws an `RpcFailure` for an event that it may not receive, the same as for one that does not exist. */
  requireEvent(name: string): void
}

/** `events`: all of the section. */
export function createPrincipals({ subscribers }: EventServerConfig, events: readonly string[]) {
  const all = Object.entries(subscribers).map(([name, { token, privateCallbacks, ...given }]) => {
    const own = given.events ?? events
    const principal: Principal = {
      name,
      events: own,
      privateCallbacks,
      sealer: createSealer(token),
      requireEvent(event) {
        if (!own.includes(event)) throw new RpcFailure(rpcCodes.notFound, 'NotFound', { kind: 'event' })
      },
    }
    return { digest: toDigest(token), principal }
  })
  return {
    find: (name: string) => all.find(({ principal }) => principal.name === name)?.principal,
    /** The subscriber with the token of the request; undefined if there is none. */
    recognise(request: Request): Principal | undefined {
      const [, token = ''] = /^bearer +([^ ]+)$/i.exec(request.headers.get('authorization') ?? '') ?? []
      const given = toDigest(token)
      // all are compared, so that the time shows nothing
      return all.filter(({ digest }) => timingSafeEqual(digest, given)).at(0)?.principal
    },
  }
}
export type Principals = ReturnType<typeof createPrincipals>

const toDigest = (token: string): Buffer => hash('sha256', token, 'buffer')
