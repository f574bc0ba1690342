// What a request without a valid token shows. It decides how the request is refused, so that no answer depends on which hooks exist.
import type { Generation } from '../pipeline/generation.ts'
import type { Knock } from './admission.ts'

type Asked = {
  /** Whether the headers show a proof of a scheme that some mapping asks for. */
  readonly isShown: (headers: Knock['headers']) => boolean
  /** The largest body that any signed mapping takes, in bytes. */
  readonly limit: number
}

const byGeneration = new WeakMap<Generation, Asked>()

/**
 * What the signed mappings of a generation ask for, whatever their names are. A scheme whose proof is in the body shows
 * nothing, and a Bearer token is what every hook takes: neither counts as shown.
 */
export function toAsked(generation: Generation): Asked {
  const known = byGeneration.get(generation)
  if (known !== undefined) return known
  const signed = generation.mappings.flatMap(({ match, mapping, verifier }) =>
    verifier === undefined || verifier.isClaimed({}) ? [] : [{ path: match.path, verify: mapping.verify, verifier }],
  )
  // many mappings ask for one scheme, under one header
  const distinct = new Map(
    signed.map(({ verify, verifier }) => [
      JSON.stringify([verifier.scheme, verify?.header, verify?.prefix]),
      verifier.isClaimed,
    ]),
  )
  const claims = [...distinct.values()]
  const paths = new Set(signed.map(({ path }) => path ?? ''))
  const asked: Asked = {
    isShown(headers) {
      const { authorization = '', ...others } = headers
      const shown = /^bearer\b/i.test(authorization) ? others : headers
      return claims.some((isClaimed) => isClaimed(shown))
    },
    limit: [...paths].reduce(
      (largest, path) => Math.max(largest, generation.hook(path).maxBodyBytes),
      generation.config.server.maxBodyBytes,
    ),
  }
  byGeneration.set(generation, asked)
  return asked
}
