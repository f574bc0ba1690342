// One consistent set of configuration, mappings, templates and transforms. A request keeps the one that it began with.
import { createHash } from 'node:crypto'
import type { ProblemRecord } from '../model/problem.ts'
import { type Transform, toTransformKey } from '../model/transform.ts'
import type { DefinedVerifier } from '../model/verifier.ts'
import { type CompiledMapping, compileMapping, type NamedMapping } from './compile.ts'
import { compileAgentFlow } from './flow.ts'
import { createHooks, type Hook } from './hook.ts'
import { createRouter, type Router } from './match.ts'
import { createTokenSet, listConfigTokens, type TokenSet } from './tokens.ts'
import type { SenderTable } from './senders.ts'
import type { VerifierTools } from './verify.ts'
import { listHookTokens, type PlanSettings } from '../model/config/plan-settings.ts'

/** `Settings`: the configuration of the host, which has more keys than the pipeline reads. */
export type GenerationOf<Settings extends PlanSettings = PlanSettings> = {
  /** Hash of the configuration, the mappings, the environment of transforms, and the code of every transform, sender and verifier. */
  readonly id: string
  readonly config: Settings
  /** The `process.env` of its transforms. */
  readonly env: Readonly<Record<string, string>>
  /** The tokens of the configuration. */
  readonly tokens: TokenSet
  readonly findHook: (path: string) => Hook
  /** Why each mapping would or would not take a delivery, in order. */
  readonly explain: Router<CompiledMapping>['explain']
  /** All mappings, in order of priority. */
  readonly mappings: readonly CompiledMapping[]
  readonly transforms: ReadonlyMap<string, Transform>
  readonly senders: SenderTable
  /** The verifier modules that its mappings use. */
  readonly verifiers: readonly DefinedVerifier[]
  /** Transforms and verifiers that do not load. If there is one, the generation is degraded. */
  readonly problems: readonly ProblemRecord[]
}

/** Throws `config-invalid` if a mapping or `hooks.agent.flow` is invalid. */
export function createGeneration<Settings extends PlanSettings>(parts: {
  config: Settings
  env?: GenerationOf['env'] | undefined
  mappings: readonly NamedMapping[]
  transforms: ReadonlyMap<string, Transform>
  senders: SenderTable
  verifiers?: readonly DefinedVerifier[] | undefined
  /** The clock, the fetch and the secrets of verifiers. */
  verifierTools?: ((secretsName: string) => VerifierTools) | undefined
}): GenerationOf<Settings> {
  const { config, env = {}, mappings, transforms, senders, verifiers = [], verifierTools } = parts
  const known = { senders, verifiers }
  const compiled = mappings.map((mapping) =>
    compileMapping(
      mapping,
      mapping.transform && transforms.get(toTransformKey(mapping.transform)),
      known,
      verifierTools,
    ),
  )
  const router = createRouter(compiled)
  const { flow } = config.hooks.agent
  const agentFlow = flow && compileAgentFlow(flow)
  return {
    id: toGenerationId({ config, env, mappings, transforms, senders, verifiers }),
    config,
    env,
    tokens: createTokenSet(listConfigTokens(listHookTokens(config.hooks), config.tokens)),
    findHook: createHooks(compiled, router, { limit: config.server.maxBodyBytes, agentFlow, senders }),
    explain: router.explain,
    mappings: compiled,
    transforms,
    senders,
    verifiers,
    problems: [
      ...verifiers.flatMap((verifier) => (verifier.kind === 'broken' ? verifier.problem : [])),
      ...[...transforms.values()].flatMap((transform) => transform.problem ?? []),
    ],
  }
}

function toGenerationId({
  config,
  env,
  mappings,
  transforms,
  senders,
  verifiers,
}: Pick<GenerationOf, 'config' | 'env' | 'transforms' | 'senders' | 'verifiers'> & {
  mappings: readonly NamedMapping[]
}): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([config, env, mappings]))
    .update(senders.hash)
  for (const key of [...transforms.keys()].toSorted()) hash.update(`\0${key}\0${transforms.get(key)?.hash ?? ''}`)
  for (const verifier of verifiers) {
    hash.update(`\0${verifier.scheme}\0${verifier.kind === 'sound' ? verifier.hash : ''}`)
  }
  return hash.digest('hex').slice(0, 12)
}
