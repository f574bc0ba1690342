// What is behind the name of a hook: found once a request, at the door, and handed on.
import type { Admitted } from '../model/delivery.ts'
import type { Accepts } from '../model/parse-body.ts'
import type { Verifier } from '../model/verifier.ts'
import type { CompiledMapping } from './compile.ts'
import type { Lane, Router } from './match.ts'

/** A mapping that asks for a proof of its sender. */
export type SignedMapping = CompiledMapping & { readonly verifier: Verifier }

export type Hook = {
  /** `built-in`: `wake` and `agent`, which no mapping overrides. `unknown`: no mapping takes the name. */
  readonly kind: 'built-in' | 'mapped' | 'unknown'
  /** The mappings that can take a delivery of this hook, in order of priority. */
  readonly mappings: readonly CompiledMapping[]
  readonly signed: readonly SignedMapping[]
  /** Lower-case names of headers whose values only the verifiers see. */
  readonly secretHeaders: ReadonlySet<string>
  /** The largest body, in bytes. */
  readonly maxBodyBytes: number
  /** False: nothing but transforms that run reads the payload. */
  readonly readsPayload: boolean
  /** Whether code of an integrator decides, and may take its time. */
  readonly runsCode: boolean
  /** The first mapping that is open to the delivery and whose every condition is met. */
  readonly find: Lane<CompiledMapping>['find']
}

const nobody: Lane<never> = { mappings: [], find: () => ({ mapping: undefined, trace: [] }) }

/** `limit`: `server.maxBodyBytes`. */
export function createHooks(router: Router<CompiledMapping>, limit: number): (path: string) => Hook {
  const builtIn = toHook('built-in', nobody, limit)
  // names without a mapping of their own share a lane, so this holds no more hooks than the configuration names
  const hooks = new Map<Lane<CompiledMapping>, Hook>()
  // an empty name is no hook, whatever takes every name
  const nameless = toHook('unknown', nobody, limit)

  return (path) => {
    if (path === 'wake' || path === 'agent') return builtIn
    if (path === '') return nameless
    const lane = router.lane(path)
    const known = hooks.get(lane)
    if (known !== undefined) return known
    const hook = toHook(lane.mappings.length > 0 ? 'mapped' : 'unknown', lane, limit)
    hooks.set(lane, hook)
    return hook
  }
}

function toHook(kind: Hook['kind'], { mappings, find }: Lane<CompiledMapping>, limit: number): Hook {
  const signed = mappings.filter((mapping): mapping is SignedMapping => mapping.verifier !== undefined)
  return {
    kind,
    mappings,
    signed,
    secretHeaders: new Set(signed.flatMap(({ verifier }) => verifier.secretHeaders)),
    maxBodyBytes: Math.max(limit, ...mappings.map(({ mapping }) => mapping.maxBodyBytes ?? 0)),
    readsPayload: kind === 'built-in' || mappings.some(({ readsPayload }) => readsPayload),
    runsCode: mappings.some(({ transform }) => transform !== undefined),
    find,
  }
}

/** Whether what let a request in opens this mapping. */
export function isOpened({ id, mapping, verifier }: CompiledMapping, { token, signedFor }: Admitted): boolean {
  if (verifier === undefined) return token
  return signedFor.includes(id) && (token || mapping.verify?.also === undefined)
}

/** Whether anything behind the hook is open to the request: a built-in hook takes the token, a mapping what it asks for. */
export function isHookOpened({ kind, mappings }: Hook, admitted: Admitted): boolean {
  return kind === 'built-in' ? admitted.token : mappings.some((mapping) => isOpened(mapping, admitted))
}

/** What the body may be: JSON alone for the built-in hooks, forms too for the others, and what a proved scheme sends. */
export function toAccepts({ kind, signed }: Hook, { signedFor }: Admitted): Accepts {
  const proved = signed.filter(({ id }) => signedFor.includes(id))
  return {
    forms: kind !== 'built-in',
    text: proved.some(({ verifier }) => verifier.accepts.text),
    empty: proved.some(({ verifier }) => verifier.accepts.empty),
  }
}
