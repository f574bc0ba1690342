// The proofs that a request without a valid token shows in its headers, whatever hook it asks for.
import type { Generation } from '../pipeline/generation.ts'
import type { CheckedHead } from '../deliveries/delivery.ts'

type ClaimedSchemes = {
  /** Whether the headers have a proof of a scheme that some mapping uses. */
  readonly isShown: (headers: CheckedHead['headers']) => boolean
  /** The largest body that any signed mapping accepts, in bytes. */
  readonly limit: number
}

const byGeneration = new WeakMap<Generation, ClaimedSchemes>()

/**
 * What a request without a valid token shows decides how it is refused, so that no answer depends on which hooks exist. So this
 * covers all signed mappings, whatever their names. A proof in the body shows nothing in the headers, and every hook takes a
 * Bearer token: neither counts.
 */
export function findClaimedSchemes(generation: Generation): ClaimedSchemes {
  const known = byGeneration.get(generation)
  if (known !== undefined) return known
  const signed = generation.mappings.flatMap(({ match, mapping, verifier }) =>
    verifier === undefined || verifier.isClaimed({}) ? [] : [{ path: match.path, verify: mapping.verify, verifier }],
  )
  // many mappings use one scheme with one header
  const distinct = new Map(
    signed.map(({ verify, verifier }) => [
      JSON.stringify([verifier.scheme, verify?.header, verify?.prefix]),
      verifier.isClaimed,
    ]),
  )
  const claims = [...distinct.values()]
  const paths = new Set(signed.map(({ path }) => path ?? ''))
  const schemes: ClaimedSchemes = {
    isShown(headers) {
      const shown = withoutBearer(headers)
      return claims.some((isClaimed) => isClaimed(shown))
    },
    limit: [...paths].reduce(
      (largest, path) => Math.max(largest, generation.hook(path).maxBodyBytes),
      generation.config.server.maxBodyBytes,
    ),
  }
  byGeneration.set(generation, schemes)
  return schemes
}

/** The headers without a Bearer token. The copy is made only if there is one: most requests that ask this have none. */
function withoutBearer(headers: CheckedHead['headers']): CheckedHead['headers'] {
  if (!/^bearer\b/i.test(headers['authorization'] ?? '')) return headers
  const { authorization: _, ...others } = headers
  return others
}
