// The door of hosts that have a server: the mapping engine with live transforms, without a store, ports and agents. No other file of `src/` imports
// this file.
import { join, resolve } from 'node:path'
import { newId } from '../base/id.ts'
import { createSerialQueue } from '../base/serial.ts'
import { readToken, toHeaders } from '../gateway/http/admission.ts'
import { createOtherMethods, toAnswer } from '../gateway/http/other-methods.ts'
import { readHookName, takeUrlSecret } from '../gateway/http/target.ts'
import { createAdapters } from './adapters.ts'
import type { Engine, EngineDecision, EngineOptions, EngineRequest } from './types.ts'
import { type Config, createConfig } from '../model/config/config.ts'
import { readMappingId } from '../core/model/mapping.ts'
import { findConfigIssues } from '../model/config/rules.ts'
import { silentLog } from '../base/log.ts'
import { readPayload } from '../core/model/body.ts'
import { Problem, toProblem } from '../core/model/problem.ts'
import { buildDelivery, checkBody, convertRequest } from '../core/mapping/delivery.ts'
import { createSenders } from '../gateway/proofs/senders.ts'
import { senderRows } from '../plugins/senders/index.ts'
import type { Generation } from '../gateway/generation/generation.ts'
import type { Policy } from '../core/mapping/policy.ts'
import { createPolicy } from '../gateway/generation/host-policy.ts'
import { createGeneration } from '../gateway/generation/generation.ts'
import { type Hook, isHookOpen } from '../core/mapping/hook.ts'
import { listParts } from '../core/mapping/items.ts'
import type { Decision } from '../core/mapping/decision.ts'
import type { Delivery } from '../core/model/delivery.ts'
import type { PlannedAction } from '../core/model/action.ts'
import { decide } from '../core/mapping/pipeline.ts'
import { checkProofs, type HandedSecrets, listSigned, openRequest } from '../gateway/proofs/check.ts'
import { toTokenDigest } from '../gateway/generation/tokens.ts'
import { createPinnedFetch } from '../gateway/proofs/verifiers/pinned-fetch.ts'
import { createFixtureGate } from '../gateway/replay/fixture-gate.ts'
import { chooseTransforms, type ModuleReport } from '../core/reload/gate.ts'
import { createWatcher } from '../core/reload/watch.ts'
import { createTransformRuntime } from '../core/transforms/runtime.ts'
import { resolveTransformsRoot } from '../core/transforms/root.ts'

export type { MappingInput } from '../core/model/mapping.ts'
export type { ModuleReport } from '../core/reload/gate.ts'
export type { AcceptedRequest, Engine, EngineDecision, EngineOptions, EngineRequest, PlanRequest } from './types.ts'
export { Problem, senderRows }

/** Hands no secret over: a host cannot arm a mapping. */
const noHanded: HandedSecrets = {
  isArmed: () => false,
  save: () => Promise.reject(new Problem('unauthorized', 'No new secret is accepted.')),
}

/** Throws `config-invalid` for an invalid mapping, but not for a transform that does not load: its requests are parked. */
export async function createEngine(options: EngineOptions): Promise<Engine> {
  const { env = {}, log = silentLog, watch = true, onAccept } = options
  const senders = createSenders(options.senders ?? senderRows)
  const dir = resolve(options.dir ?? '.')
  const config = parseConfig(options)
  const mappings = config.hooks.mappings.map((mapping, index) => ({ ...mapping, id: readMappingId(mapping, index) }))
  const runtime = createTransformRuntime({ clock: Date.now, log })
  const fetchPinned = createPinnedFetch({ now: Date.now })
  const listeners: ((modules: readonly ModuleReport[]) => void)[] = []
  const inOrder = createSerialQueue()
  const answerOtherMethod = createOtherMethods({ admission: { refuseUnproved }, handed: noHanded })
  let serving: Generation | undefined
  let problems: ReadonlySet<string> = new Set()

  /** The newest files, with the last good version of each module that does not work. */
  async function load(changed: readonly string[]): Promise<Generation> {
    const root = await resolveTransformsRoot(dir, config.hooks)
    const refs = mappings.flatMap(({ transform }) => transform ?? [])
    const loaded = await runtime.load({ root, refs, settings: { ...config.hooks.transforms, env } })
    const parts = { config, mappings, transforms: loaded, senders, verifiers: [] }
    const test = createFixtureGate({ root, parts, changed, suspects: problems })
    const chosen = await chooseTransforms({ loaded, serving: serving?.transforms, test })
    const verifierTools = () => ({ fetch: fetchPinned, now: Date.now })
    const next = createGeneration({
      config,
      env,
      mappings,
      transforms: chosen.transforms,
      senders,
      verifierTools,
      policy: withPlan(createPolicy(config), options.plan),
    })
    runtime.serve(chosen.transforms)
    problems = new Set(chosen.modules.flatMap(({ module, problem }) => (problem === undefined ? [] : module)))
    serving = next
    for (const listener of listeners) listener(chosen.modules)
    return next
  }

  const first = await load([]).catch(async (error: unknown) => {
    await runtime.close()
    throw error
  })
  const current = () => serving ?? first
  const watcher = watch
    ? createWatcher({
        paths: { roots: [join(dir, 'hooks', 'transforms')], files: [] },
        inputs: () => runtime.inputs(),
        onChange: ({ changed }) =>
          void inOrder(() => load(changed)).catch((error: unknown) => log.error({ err: error }, 'a reload failed')),
        log,
      })
    : undefined
  await watcher?.ready()

  async function decideOn(
    { method, body, ...given }: EngineRequest,
    { trusted = false }: { readonly trusted?: boolean } = {},
  ): Promise<EngineDecision> {
    const generation = current()
    // a client must not send a header that only `takeUrlSecret` makes
    const rawHeaders = Object.entries(given.headers).flatMap((pair) => (pair[0].startsWith(':') ? [] : pair))
    const target = { method, url: given.url, rawHeaders }
    takeUrlSecret(target, generation)
    const path = readHookName(target.url, config.hooks.path)
    if (path === undefined) throw new Problem('hook-unknown', 'Nothing is here.')
    const sent = readToken(rawHeaders)
    const known = sent.kind === 'token' ? generation.tokens.find(toTokenDigest(sent.token)) : undefined
    const token = trusted || known !== undefined ? 'valid' : sent.kind === 'none' ? 'none' : 'wrong'
    const headers = toHeaders(rawHeaders)
    const head = { method, url: target.url, path, headers, client: '', token, tokenId: known?.id } as const
    const hook = generation.findHook(path)
    const signed = listSigned(hook, head)
    if (method !== 'POST' && signed.length === 0)
      return { kind: 'handshake', answer: await answerOtherMethod(hook, head) }
    const claimed = signed.filter(({ verifier }) => verifier.isClaimed(headers) || verifier.isHandshakeHead(head))
    // without a credential, no answer shows which hooks exist
    if (claimed.length === 0 && token !== 'valid') refuseUnproved()
    if (hook.kind === 'unknown') throw new Problem('hook-unknown', 'No mapping has this hook.')
    const read = Buffer.from(body)
    const proof = await checkProofs(claimed, { head, rawBody: read }, noHanded)
    if (proof.answer !== undefined) return { kind: 'handshake', answer: toAnswer(proof.answer) }
    if (!isHookOpen(hook, { token: token === 'valid', signedFor: proof.signedFor })) {
      refuseUnproved(head, { isGatewaysFault: proof.isGatewaysFault })
    }
    const opened = convertRequest(await openRequest({ request: head, hook, read, proof }), hook)
    const delivery = buildDelivery(opened.head, opened.body, { hook, id: newId(), receivedAt: Date.now() })
    const decision = await decideWhole(delivery, hook)
    const { mappingId } = decision
    switch (decision.kind) {
      case 'accept':
        return { kind: 'accept', mappingId: mappingId ?? path, actions: decision.actions, response: decision.response }
      case 'skip':
        return { kind: 'skip', mappingId, why: decision.why }
      case 'park':
      case 'refuse':
        return { kind: decision.kind, mappingId, problem: decision.problem }
    }
  }

  /** A list that is too long for one commit of a gateway is decided in parts, because the host stores what it wants. */
  async function decideWhole(delivery: Delivery, hook: Hook): Promise<Decision> {
    const decision = await decide(delivery, { hook, newId, serves: true })
    if (decision.kind !== 'accept') checkBody(delivery)
    if (decision.kind !== 'skip' || decision.splits === undefined) return decision
    const { mappingId, transformHash, retain, trace, log: lines } = decision
    const actions: PlannedAction[] = []
    for (const { head, body } of listParts(delivery, decision.splits)) {
      const { receivedAt } = delivery
      const part = await decideWhole(buildDelivery(head, body, { hook, id: newId(), receivedAt }), hook)
      if (part.kind === 'accept') actions.push(...part.actions)
      else if (part.kind !== 'skip') return part
    }
    const reasons = { mappingId, transformHash, retain, trace, log: lines }
    return { kind: 'accept', actions, response: undefined, once: undefined, ...reasons }
  }

  const decideSafely: Engine['decide'] = (request, how) =>
    decideOn(request, how).catch((error: unknown) => {
      const problem = toProblem(error)
      if (problem.code === 'internal-error') log.error({ err: problem.cause }, 'a request failed inside the engine')
      return { kind: 'refuse', mappingId: undefined, problem }
    })
  return {
    decide: decideSafely,
    ...createAdapters({ decide: decideSafely, config, onAccept, log }),
    onReload: (listener) => void listeners.push(listener),
    async close() {
      await watcher?.close()
      await inOrder(() => {})
      await runtime.close()
    },
  }
}

function withPlan(policy: Policy, plan: EngineOptions['plan']): Policy {
  if (plan === undefined) return policy
  return {
    ...policy,
    plan(action, input) {
      const { path, headers, query, source, event, body } = input.delivery
      const request = { path, headers, query, source, event, payload: readPayload(body) }
      return plan(policy.plan(action, input), request)
    },
  }
}

/** What the engine decides goes to the host, which has the channels. */
const coreConfig = createConfig({ channels: undefined, runners: [], sources: [] }, { takesOthers: false })

/** Throws `config-invalid`. */
function parseConfig({ mappings, path = '/hooks', token }: EngineOptions): Config {
  // a token that nobody knows closes the mappings without `verify`
  const hooks = { enabled: true, path, token: token ?? newId() + newId(), mappings }
  const parsed = coreConfig.safeParse({ hooks })
  const faults = parsed.success
    ? findConfigIssues(parsed.data).map(({ text }) => text)
    : parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`)
  if (!parsed.success || faults.length > 0) throw new Problem('config-invalid', faults.join('\n'))
  return parsed.data
}

function refuseUnproved(_head?: unknown, proof?: { readonly isGatewaysFault: boolean }): never {
  if (proof?.isGatewaysFault === true)
    throw new Problem('proof-unavailable', 'The proof of the sender cannot be checked at the moment.')
  throw new Problem('unauthorized', 'The request has no valid credential.')
}
