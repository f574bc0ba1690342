// Refuses secrets of mappings that are too short, with their places in the configuration.
import { listLeaves } from '../config/warnings.ts'
import type { Config } from '../../model/config/config.ts'
import { toDottedPath } from '../../core/model/issue.ts'
import { Problem } from '../../core/model/problem.ts'
import type { NamedMapping } from '../../core/mapping/compile.ts'
import type { KnownSchemes } from '../proofs/senders.ts'
import { findSecretFault } from '../proofs/verifiers/secret-length.ts'

/** Throws `config-invalid` with a line for each secret that is too short. `mappings`: those of the configuration, then those of its presets. */
export function checkShortSecrets({ hooks }: Config, mappings: readonly NamedMapping[], known: KnownSchemes): void {
  const presetLeaves = listLeaves({ hooks: { presets: hooks.presets } }, [])
  const findPlace = (index: number, secret: string, key: string): string => {
    if (index < hooks.mappings.length) return `hooks.mappings[${index}].verify.${key}`
    const found = presetLeaves.find(({ value }) => value === secret)
    return found === undefined ? `Mapping "${mappings[index]?.id}": verify.${key}` : toDottedPath(found.path)
  }
  const lines = mappings.flatMap(({ verify }, index) => {
    if (verify === undefined) return []
    const { secret, secrets = [] } = verify
    const all = [
      ...(secret === undefined ? [] : [{ key: 'secret', secret }]),
      ...secrets.map((one, at) => ({ key: `secrets[${at}]`, secret: one })),
    ]
    return all.flatMap((one) => {
      const why = findSecretFault(one.secret, verify, known)
      return why === undefined
        ? []
        : `${findPlace(index, one.secret, one.key)} ${why}, and set it at the sender too. If the sender makes the secret, copy all of it.`
    })
  })
  // the mappings of a preset share one secret, which is reported once
  const [first, ...rest] = new Set(lines)
  if (first !== undefined)
    throw new Problem('config-invalid', first, rest.length === 0 ? {} : { frame: rest.join('\n') })
}
