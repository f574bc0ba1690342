// Builds the next generation: reads all files again, loads and tests them, and compares the result with the serving generation.
import { isSameJson } from '../../base/json.ts'
import { type LoadedConfig, loadConfig, placeProblem } from '../config/config.ts'
import { type Env, pickEnv } from '../config/env.ts'
import type { BuildInput } from '../../core/transforms/read.ts'
import type { PoolSettings } from '../../core/transforms/pool/pool.ts'
import { resolveTransformsRoot } from '../../core/transforms/root.ts'
import type { TransformRef } from '../../core/model/mapping.ts'
import { Problem } from '../../core/model/problem.ts'
import type { Transform } from '../../core/model/transform.ts'
import type { Generation } from '../generation/generation.ts'
import { createGeneration } from '../generation/generation.ts'
import type { VerifierTools } from '../proofs/verify.ts'
import type { AssembledParts, Assembler } from './assemble.ts'
import type { GenerationParts } from '../replay/fixtures.ts'
import { createFixtureGate } from '../replay/fixture-gate.ts'
import { type ModuleReport, chooseTransforms } from '../../core/reload/gate.ts'

/** The result of a load, and the files that it read. */
type LoadedModules = {
  readonly transforms: ReadonlyMap<string, Transform>
  readonly inputs: readonly BuildInput[]
}

export type CandidateSource = {
  /** The config directory. */
  readonly dir: string
  readonly env: Env
  /** A module that does not load becomes a placeholder with the reason. Throws `config-invalid` for a module outside the root. */
  readonly load: (query: {
    root: string
    refs: readonly TransformRef[]
    settings: PoolSettings
  }) => Promise<LoadedModules>
  readonly verifierTools?: (secretsName: string) => VerifierTools
  /** Called with each valid configuration. */
  readonly onConfig?: (loaded: LoadedConfig) => void
}

export type Candidate = {
  readonly read: LoadedConfig
  readonly assembled: AssembledParts
  readonly generation: Generation
  /** A generation of the code on disk, even if it does not go live. Replays run this code. */
  readonly edited: Generation
  readonly parts: GenerationParts
  readonly modules: readonly ModuleReport[]
}

type Against = { serving: Candidate | undefined; changed: readonly string[]; suspects: ReadonlySet<string> }

/** Builds the candidate. Throws a Problem of the configuration, with the place of the key. */
export async function buildCandidate(
  source: CandidateSource & { readonly assembler: Assembler },
  against: Against,
): Promise<Candidate> {
  const read = loadConfig({ ...source, before: against.serving?.read })
  source.onConfig?.(read)
  try {
    return await buildFrom(read, source, against)
  } catch (error) {
    throw error instanceof Problem ? placeProblem(error, read) : error
  }
}

async function buildFrom(
  read: LoadedConfig,
  { dir, load, assembler, verifierTools }: CandidateSource & { readonly assembler: Assembler },
  against: Against,
): Promise<Candidate> {
  const { config, env: settings } = read
  const assembled = await assembler.assemble(config, against.serving?.assembled)
  const { mappings, senders, verifiers, reports } = assembled
  // reports an invalid template before any transform is loaded
  if (config !== against.serving?.read.config)
    createGeneration({ config, mappings, transforms: new Map(), senders, verifiers })
  const root = await resolveTransformsRoot(dir, config.hooks)
  const refs = mappings.flatMap(({ transform }) => transform ?? [])
  const { transforms: limits } = config.hooks
  const env = pickEnv(limits.env, settings)
  const loaded = await load({ root, refs, settings: { ...limits, env } })
  const { transforms, modules } = await chooseTransforms({
    loaded: loaded.transforms,
    serving: against.serving?.generation.transforms,
    test: createFixtureGate({
      root,
      parts: { config, mappings, transforms: loaded.transforms, senders, verifiers },
      changed: against.changed,
      suspects: against.suspects,
    }),
  })
  const parts = { config, mappings, transforms, senders, verifiers }
  const generation = createGeneration({ ...parts, env, verifierTools })
  const isAllLive = [...loaded.transforms].every(([key, transform]) => transforms.get(key) === transform)
  const edited = isAllLive ? generation : createGeneration({ ...parts, env, transforms: loaded.transforms })
  return { read, generation, edited, assembled, parts, modules: [...reports, ...modules] }
}

/** Whether the candidate equals the serving generation. The reasons of placeholders are compared too, because answers show them in development. */
export function isSameAsServing(one: Candidate, serving: Candidate): boolean {
  const [its, theirs] = [one, serving].map(({ generation: { id, problems }, assembled: { own, plugins } }) => {
    const codes = [...own.channels, ...plugins].map((part) => (part.kind === 'sound' ? part.hash : part.problem))
    return [id, problems, codes]
  })
  return isSameJson(its, theirs)
}

/**
 * The modules whose parked deliveries may succeed now: the modules with new code. If the configuration or the environment changed, all modules
 * that work, and those that no mapping names any more.
 */
export function listRetryableModules(before: Candidate, after: Candidate): string[] {
  const sound = after.modules.filter(({ kind }) => kind === 'live').map(({ module }) => module)
  const [old, now] = [before, after].map(({ generation: { config, env } }) => [config, env])
  if (isSameJson(old, now)) return sound
  const good = [...after.generation.transforms.values()].filter(({ problem }) => problem === undefined)
  const named = new Set(after.modules.map(({ module }) => module))
  const dropped = before.modules.filter(({ module }) => !named.has(module))
  return [...new Set([...good, ...dropped].map(({ module }) => module))]
}
