// Which agents, session keys and models a hook may choose. The rules of the configuration and the policy of a delivery share these checks.
import { mainSessionKey } from '../../core/model/action.ts'
import type { KeyOrigin } from '../../core/mapping/policy.ts'

const maxKeyChars = 512

/** Whether `hooks.allowedAgentIds` lets a hook name this agent. Without a list, or with "*" in it, any agent is allowed. */
export function isAgentAllowed(agentId: string, allowed: readonly string[] | undefined): boolean {
  return allowed === undefined || allowed.includes('*') || allowed.includes(agentId)
}

/**
 * Prefixes are compared case-sensitively, like keys. Without a list, or with an empty one, every key is allowed. But `main` is the main
 * session: a fixed key of the operator may always name it, a transform may if there is no list, and any other origin only if the list
 * contains it.
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

/** Whether a key that starts with this beginning and goes on can have one of the prefixes. Without a list, or with an empty one, it can. */
export function isBeginningAllowed(beginning: string, prefixes: readonly string[] | undefined = []): boolean {
  const isPossible = (prefix: string) => beginning.startsWith(prefix) || prefix.startsWith(beginning)
  return prefixes.length === 0 || prefixes.some(isPossible)
}

/** Whether a key is short and has no control character. Keys are printed and logged, where a line break could forge a line. */
export function isPlainSessionKey(key: string): boolean {
  return key.length <= maxKeyChars && !/\p{Cc}/u.test(key)
}

/** `<provider>/<model>` without a path or a query: a hook may choose the name, and Google's model names go into a URL. */
const modelName = /^[^/\s]+\/(?!.*\.\.)[^\s?#%\\]+$/

export function isModelName(name: string): boolean {
  return modelName.test(name)
}

/** The model of an alias, whose case is ignored; any other name is returned without the spaces around it. An alias of an alias is not resolved. */
export function resolveModelName(nameOrAlias: string, aliases: Readonly<Record<string, string>>): string {
  const name = nameOrAlias.trim()
  if (name.includes('/')) return name
  const folded = name.toLowerCase()
  return Object.entries(aliases).find(([alias]) => alias.toLowerCase() === folded)?.[1] ?? name
}
