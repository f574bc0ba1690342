// What the configuration lets a hook choose. The rules of the file and the policy of a delivery share these checks.
import { mainSessionKey } from './action.ts'
import type { Config } from './config.ts'

const maxKeyChars = 512

/** Whether `hooks.allowedAgentIds` lets a hook name this agent. No list, or "*" in it, means any. */
export function isAgentAllowed(agentId: string, allowed: readonly string[] | undefined): boolean {
  return allowed === undefined || allowed.includes('*') || allowed.includes(agentId)
}

/**
 * Who chose a session key: a request, a template with a fixed beginning, a transform, or the operator. A request may choose one only
 * with `hooks.allowRequestSessionKey`.
 */
export type KeyOrigin = 'request' | 'template' | 'code' | 'operator'

/**
 * Prefixes are compared as they are written, as keys are. No list, or an empty one, means no restriction. But `main` is the main
 * session: a fixed key of the operator may always name it; a transform may unless there is a list, and anything else only if the
 * list has it.
 */
export function isSessionKeyAllowed(
  key: string,
  prefixes: readonly string[] | undefined = [],
  origin: KeyOrigin = 'operator',
): boolean {
  const isOpen = prefixes.length === 0
  if (key !== mainSessionKey) return isOpen || prefixes.some((prefix) => key.startsWith(prefix))
  return origin === 'operator' || prefixes.includes(key) || (origin === 'code' && isOpen)
}

/** Whether a key with this beginning can have one of the prefixes. */
export function isBeginningAllowed(beginning: string, prefixes: readonly string[] | undefined): boolean {
  return isSessionKeyAllowed(beginning, prefixes) || (prefixes ?? []).some((prefix) => prefix.startsWith(beginning))
}

/** Keys are printed, logged and compared: a line break in one is an attack. */
export function isPlainSessionKey(key: string): boolean {
  return key.length <= maxKeyChars && !/\p{Cc}/u.test(key)
}

/** `<provider>/<model>`. No path, no query: a hook may choose the name, and Google's goes into a URL. */
const modelName = /^[^/\s]+\/(?!.*\.\.)[^\s?#%\\]+$/

export function isModelName(name: string): boolean {
  return modelName.test(name)
}

/** The model of a name: an alias, in any case, is resolved once; any other name is the model. */
export function resolveModelName(asked: string, aliases: Readonly<Record<string, string>>): string {
  const name = asked.trim()
  if (name.includes('/')) return name
  const folded = name.toLowerCase()
  return Object.entries(aliases).find(([alias]) => alias.toLowerCase() === folded)?.[1] ?? name
}

/** Whether `agents.defaults.models` lists the model. Both may be named by an alias. No list means any. */
export function isModelAllowed(asked: string, { agents, models }: Pick<Config, 'agents' | 'models'>): boolean {
  const allowed = agents.defaults.models
  if (allowed === undefined) return true
  const model = resolveModelName(asked, models.aliases)
  return allowed.some((name) => resolveModelName(name, models.aliases) === model)
}
