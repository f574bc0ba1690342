// The targets that an operator can pause, by name, and the label by which the store finds the jobs of each.
import { cut, findNearest } from '../../../base/text.ts'
import { Problem } from '../../../core/model/problem.ts'
import type { Generation } from '../../generation/generation.ts'
import { findDefaultAgentId } from '../../../model/config/plan-settings.ts'

/** `name`: a name that people type, such as `mapping:github`. */
export type PauseTarget = { readonly label: string; readonly name: string }

const all: PauseTarget = { label: 'all', name: 'all' }

/**
 * `what`: `all`, `mapping:<id>`, `agent:<id>`, `limit:<name>`, `source:<name>` or `session:<agent>/<key>`. An `<id>` or a `<name>` alone is enough if
 * the configuration has one target with it. Throws `not-found`, and `conflict` for a name that several targets have.
 */
export function findPauseTarget(what: string, generation: Generation): PauseTarget {
  if (what === 'all') return all
  if (isFromRequest(what)) return { label: what, name: what }
  const known = listTargets(generation)
  const found = known.filter(({ name }) => name === what || name.slice(name.indexOf(':') + 1) === what)
  const [only, ...others] = found
  if (only === undefined) throw buildUnknownProblem(what, known, generation)
  if (others.length === 0) return only
  const names = found.map(({ name }) => name).join(', ')
  throw new Problem('conflict', `Several things have this name: ${names}. Give one of these names.`)
}

/** Sources and sessions come from requests, so no list has all of them. */
export function isFromRequest(name: string): boolean {
  return /^(source|session):./.test(name)
}

function listTargets({ mappings, config }: Generation): readonly PauseTarget[] {
  const sources = new Set(
    mappings.flatMap(({ mapping, provenSender }) => [mapping.match.source ?? [], provenSender?.source ?? []].flat()),
  )
  const toTarget = (kind: string) => (name: string) => ({ label: `${kind}:${name}`, name: `${kind}:${name}` })
  return [
    ...mappings.map(({ id, identity }) => ({ label: `mapping:${identity.ring}`, name: `mapping:${id}` })),
    ...Array.from(new Set([findDefaultAgentId(config), ...config.agents.list.map(({ id }) => id)]), toTarget('agent')),
    ...Object.keys(config.limits).map(toTarget('limit')),
    ...Array.from(sources, toTarget('source')),
  ]
}

function buildUnknownProblem(what: string, known: readonly PauseTarget[], { senders }: Generation): Problem {
  if (senders.find(what) !== undefined)
    return new Problem('not-found', `No mapping takes requests of ${what}. To pause it, name it "source:${what}".`)
  const names = known.flatMap(({ name }) => [name, name.slice(name.indexOf(':') + 1)])
  const near = findNearest(what, names)
  const next =
    near === undefined ? `There are ${known.map(({ name }) => name).join(', ')}, and all.` : `Did you mean ${near}?`
  return new Problem('not-found', `No mapping, agent, limit or source has the name "${cut(what, 60)}". ${next}`)
}

/** The name of a label for people: for a mapping its id, if the mapping still exists. */
export function nameLabel(label: string, { mappings }: Pick<Generation, 'mappings'>): string {
  const mapping = mappings.find(({ identity }) => label === `mapping:${identity.ring}`)
  return mapping === undefined ? label : `mapping:${mapping.id}`
}
