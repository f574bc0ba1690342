// What the campaigns change: from the bytes of a connection to the text of a reply.
import { listen } from '../../src/gateway/http/server.ts'
import { onFileEnd } from '../file-end.ts'
import type { Inside } from '../e2e/inside.ts'
import { createGatewayTarget } from './fuzz-gateway.ts'
import { createHttpTarget } from './fuzz-http.ts'
import { createProofTarget } from './fuzz-proofs.ts'
import { bodyTarget, configTarget, createReplyTarget, mailTarget, templateTarget, valueTarget } from './fuzz-texts.ts'
import type { Target } from './mutations.ts'

export const targetNames = [
  'bytes of HTTP',
  'requests to a gateway',
  'signed requests',
  'bodies',
  'values of a payload',
  'templates',
  'mails',
  'replies of an agent',
  'configurations',
] as const

/** The targets by their names, and the gateway of one of them. They are closed when the test file ends. */
export async function createTargets(): Promise<{
  readonly gateway: Inside
  readonly targets: ReadonlyMap<string, Target>
}> {
  const { target: requests, gateway } = await createGatewayTarget()
  const http = await createHttpTarget(async (listener) => {
    const skip = () => {}
    const { port, close } = await listen(listener, {
      host: '127.0.0.1',
      port: 0,
      ports: { hooks: 0, admin: 0 },
      bodyTimeoutMs: 300,
      keepAliveTimeoutMs: 5_000,
      log: { debug: skip, info: skip, warn: skip, error: skip },
    })
    onFileEnd(() => close(0))
    return port
  })
  const texts = [bodyTarget, valueTarget, templateTarget, mailTarget, createReplyTarget(), configTarget]
  const targets = [http, requests, createProofTarget(), ...texts]
  return { gateway, targets: new Map(targets.map((target) => [target.name, target])) }
}
