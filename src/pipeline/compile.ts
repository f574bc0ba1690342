// A mapping of the config made ready to run: its templates parsed, its transform at hand.
import type { Mapping } from '../model/mapping.ts'
import { Problem } from '../model/problem.ts'
import type { Transform } from '../model/transform.ts'
import type { KeyOrigin } from './policy.ts'
import { compileTemplate, type Template } from './template.ts'

/** A mapping with its id settled; `maxBodyBytes` is the limit that its preset asks for. */
export type NamedMapping = Mapping & { readonly id: string; readonly maxBodyBytes?: number | undefined }

export type CompiledMapping = {
  readonly id: string
  readonly match: Mapping['match']
  readonly mapping: NamedMapping
  /** Message of an agent action, text of a wake. Undefined: the transform supplies it. */
  readonly body: Template | undefined
  readonly name: Template | undefined
  readonly sessionKey: Template | undefined
  /** A key template that begins with a placeholder lets the sender choose the namespace: it counts as the request's. */
  readonly keyOrigin: KeyOrigin
  readonly transform: Transform | undefined
}

/** Throws `config-invalid` naming the mapping and its field where a template does not parse. */
export function compileMapping(mapping: NamedMapping, transform: Transform | undefined): CompiledMapping {
  const template = (field: 'messageTemplate' | 'textTemplate' | 'name' | 'sessionKey') => compileField(mapping, field)
  const sessionKey = template('sessionKey')
  const body = template(mapping.action === 'agent' ? 'messageTemplate' : 'textTemplate')
  return {
    id: mapping.id,
    match: mapping.match,
    mapping,
    // with neither a template nor code, the whole payload is the text
    body: body ?? (mapping.transform === undefined ? compileTemplate('{{payload}}') : undefined),
    name: template('name'),
    sessionKey,
    keyOrigin: sessionKey === undefined || sessionKey.startsWithLiteral ? 'operator' : 'request',
    transform,
  }
}

function compileField(
  mapping: NamedMapping,
  field: 'messageTemplate' | 'textTemplate' | 'name' | 'sessionKey',
): Template | undefined {
  const text = mapping[field]
  if (text === undefined) return undefined
  try {
    return compileTemplate(text)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    throw new Problem('config-invalid', `Mapping "${mapping.id}": ${field}: ${error.message}`, { cause: error })
  }
}
