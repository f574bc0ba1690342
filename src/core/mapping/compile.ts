// Makes a mapping of the configuration ready to run: parses its templates, and attaches its transform and its verifier.
import { stringify } from '../../base/sent-json.ts'
import { JobKeys } from '../model/job-keys.ts'
import type { Mapping } from '../model/mapping.ts'
import type { VerifySettings } from '../model/verify.ts'
import type { KeyOrigin } from './policy.ts'
import { Problem } from '../model/problem.ts'
import type { SenderFacts } from '../model/sender.ts'
import type { Transform } from '../model/transform.ts'
import type { Verifier } from '../model/verifier.ts'
import { compileFlow, type CompiledFlow } from './flow.ts'
import { type Identity, toIdentity } from './identity.ts'
import { type ItemsPath, parseItemsPath } from './items.ts'
import { compileResponse, type ResponseTemplate } from './response.ts'
import { compileCancelTest, type MatchInput } from './match.ts'
import type { SenderRecognition } from './senders.ts'
import { compileTemplate, type Template } from './template.ts'

/**
 * A mapping with its final id. `maxBodyBytes` is the limit that its preset asks for. `isUnnamed`: the id is its position, which
 * messages show and on which nothing else may rely.
 */
export type NamedMapping = Mapping & {
  readonly id: string
  readonly isUnnamed?: boolean | undefined
  readonly maxBodyBytes?: number | undefined
}

export type CompiledMapping = {
  readonly id: string
  readonly identity: Identity
  readonly match: Mapping['match']
  readonly accept: Mapping['accept']
  readonly mapping: NamedMapping
  readonly jobKeys: JobKeys
  /** The message of an agent action, the text of a wake. Undefined: the transform returns it. */
  readonly body: Template | undefined
  readonly name: Template | undefined
  readonly sessionKey: Template | undefined
  readonly response: ResponseTemplate | undefined
  /** A key template that begins with a placeholder lets the sender choose the namespace, so it counts as chosen by the request. */
  readonly keyOrigin: KeyOrigin
  readonly flow: CompiledFlow | undefined
  readonly forEach: ItemsPath | undefined
  /** Whether a delivery matches `flow.cancelOn`, so that it ends the turns of its key. */
  readonly isCancelledBy: (delivery: MatchInput) => boolean
  readonly transform: Transform | undefined
  /** Whether the payload is read before the transform runs, or there is no working transform. */
  readonly readsPayload: boolean
  /** Undefined: the hook token opens the mapping. Otherwise a proof of this scheme does, and the token alone does not. */
  readonly verifier: Verifier | undefined
  /** The sender whose requests the proof proves. Its source is the sender of the scheme, else `match.source`, else the scheme. */
  readonly provenSender: { readonly source: string; readonly facts: SenderFacts | undefined } | undefined
}

/** What the mappings of a generation share. */
export type MappingParts = {
  readonly senders: SenderRecognition
  /** Makes the proof of a mapping. `secretsName`: see `Identity`. Throws `config-invalid`. */
  readonly prove: (settings: VerifySettings, secretsName: string) => Verifier
}

/** Throws `config-invalid` with the mapping and the field if a template or a setting is invalid. */
export function compileMapping(
  mapping: NamedMapping,
  transform: Transform | undefined,
  { senders, prove }: MappingParts,
): CompiledMapping {
  const template = (field: 'messageTemplate' | 'textTemplate' | 'name' | 'sessionKey') => compileField(mapping, field)
  const { verify, match, forEach, response: settings, flow: flowSettings } = mapping
  const identity = toIdentity(mapping)
  const name = template('name')
  const sessionKey = template('sessionKey')
  const body = template(mapping.action === 'wake' ? 'textTemplate' : 'messageTemplate')
  const verifier = verify && nameMappingInProblem(mapping, 'verify', () => prove(verify, identity.secretsName))
  const accept = verifier?.acceptsEmpty === true ? [...(mapping.accept ?? []), 'empty' as const] : mapping.accept
  const isTransformOnly = transform !== undefined && transform.problem === undefined && forEach === undefined
  const response = settings && nameMappingInProblem(mapping, 'response.body', () => compileResponse(settings))
  const flow = flowSettings && nameMappingInProblem(mapping, 'flow', () => compileFlow(flowSettings, identity.ring))
  const readers = [body, name, sessionKey, response, flow].filter((reader) => reader?.readsPayload === true)
  return {
    id: mapping.id,
    identity,
    match,
    accept,
    mapping,
    jobKeys: JobKeys.parse(mapping),
    body: body ?? (mapping.transform === undefined ? wholePayload : undefined),
    name,
    sessionKey,
    response,
    keyOrigin: toKeyOrigin(sessionKey),
    flow,
    forEach:
      forEach === undefined ? undefined : nameMappingInProblem(mapping, 'forEach', () => parseItemsPath(forEach)),
    isCancelledBy: compileCancelTest({ ...mapping, accept }, flowSettings?.cancelOn),
    transform,
    readsPayload:
      !isTransformOnly ||
      readers.length > 0 ||
      [match, ...(match.any ?? [])].some(({ payload }) => payload !== undefined),
    verifier,
    provenSender: verifier && toProvenSender(verifier.source ?? match.source ?? verifier.scheme, senders),
  }
}

function toProvenSender(source: string, senders: SenderRecognition): NonNullable<CompiledMapping['provenSender']> {
  return { source, facts: senders.find(source) }
}

function toKeyOrigin(sessionKey: Template | undefined): KeyOrigin {
  if (sessionKey === undefined || sessionKey.isStatic) return 'operator'
  return sessionKey.startsWithLiteral ? 'template' : 'request'
}

/** A mapping with neither a template nor code sends the text of a text or XML body, or else the whole payload as JSON. */
const wholePayload: Template = {
  render: ({ payload, bodyText }) => bodyText?.() ?? stringify(payload()),
  isStatic: false,
  startsWithLiteral: false,
  readsPayload: true,
  listEmpty: () => [],
}

function compileField(
  mapping: NamedMapping,
  field: 'messageTemplate' | 'textTemplate' | 'name' | 'sessionKey',
): Template | undefined {
  const text = mapping[field]
  return text === undefined ? undefined : nameMappingInProblem(mapping, field, () => compileTemplate(text))
}

/** Returns what `make` returns. Adds the mapping and the field to a problem that it throws. */
function nameMappingInProblem<T>(mapping: NamedMapping, field: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    throw new Problem('config-invalid', `Mapping "${mapping.id}": ${field}: ${error.message}`, { cause: error })
  }
}
