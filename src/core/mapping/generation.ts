// One consistent set of mappings, templates, transforms and policy. A request keeps the one that it began with.
import { createHash } from 'node:crypto'
import type { ProblemRecord } from '../model/problem.ts'
import { type Transform, toTransformKey } from '../model/transform.ts'
import { type CompiledMapping, compileMapping, type MappingParts, type NamedMapping } from './compile.ts'
import { createHooks, type Hook } from './hook.ts'
import { createRouter, type Router } from './match.ts'
import type { Policy } from './policy.ts'

/** `Settings`: the configuration of the host, which the engine does not read. */
export type GenerationOf<Settings> = {
  /** Hash of the configuration, the mappings, the environment of transforms, and the code of every transform, sender and verifier. */
  readonly id: string
  readonly config: Settings
  /** The `process.env` of its transforms. */
  readonly env: Readonly<Record<string, string>>
  readonly findHook: (path: string) => Hook
  /** Why each mapping would or would not take a delivery, in order. */
  readonly explain: Router<CompiledMapping>['explain']
  /** All mappings, in order of priority. */
  readonly mappings: readonly CompiledMapping[]
  readonly transforms: ReadonlyMap<string, Transform>
  /** Code that does not load. If there is one, the generation is degraded. */
  readonly problems: readonly ProblemRecord[]
}

type Parts<Settings> = MappingParts & {
  readonly config: Settings
  readonly env?: Readonly<Record<string, string>> | undefined
  readonly mappings: readonly NamedMapping[]
  readonly transforms: ReadonlyMap<string, Transform>
  readonly policy: Policy
  /** The largest body, in bytes, of a hook whose mappings name no limit. */
  readonly maxBodyBytes: number
  /** The other code of the host that decides: with its hash, or the problem for which it does not load. */
  readonly codes?: readonly { readonly name: string; readonly hash: string; readonly problem?: ProblemRecord }[]
}

/** Throws `config-invalid` if a mapping is invalid. */
export function createGenerationOf<Settings>(parts: Parts<Settings>): GenerationOf<Settings> {
  const { config, env = {}, mappings, transforms, senders, prove, policy, maxBodyBytes, codes = [] } = parts
  const compiled = mappings.map((mapping) =>
    compileMapping(mapping, mapping.transform && transforms.get(toTransformKey(mapping.transform)), { senders, prove }),
  )
  const router = createRouter(compiled)
  return {
    id: toGenerationId({ ...parts, env, codes }),
    config,
    env,
    findHook: createHooks(compiled, router, { limit: maxBodyBytes, senders, policy }),
    explain: router.explain,
    mappings: compiled,
    transforms,
    problems: [
      ...codes.flatMap(({ problem }) => problem ?? []),
      ...[...transforms.values()].flatMap((transform) => transform.problem ?? []),
    ],
  }
}

function toGenerationId<Settings>({
  config,
  env,
  mappings,
  transforms,
  senders,
  codes = [],
}: Pick<Parts<Settings>, 'config' | 'env' | 'mappings' | 'transforms' | 'senders' | 'codes'>): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([config, env, mappings]))
    .update(senders.hash)
  for (const key of [...transforms.keys()].toSorted()) hash.update(`\0${key}\0${transforms.get(key)?.hash ?? ''}`)
  for (const code of codes) hash.update(`\0${code.name}\0${code.hash}`)
  return hash.digest('hex').slice(0, 12)
}
