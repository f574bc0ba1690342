// What the configuration lets a hook choose. The rules of the file and the policy of a delivery share these checks.
import type { Config } from './config.ts'

const longestKey = 512

/** Whether `hooks.allowedAgentIds` lets a hook name this agent. No list, or "*" in it, means any. */
export function isAgentAllowed(agentId: string, allowed: readonly string[] | undefined): boolean {
  return allowed === undefined || allowed.includes('*') || allowed.includes(agentId)
}

/** Prefixes ignore case. No list, or an empty one, means no restriction. */
export function isSessionKeyAllowed(key: string, prefixes: readonly string[] | undefined): boolean {
  if (prefixes === undefined || prefixes.length === 0) return true
  const folded = key.toLowerCase()
  return prefixes.some((prefix) => folded.startsWith(prefix.trim().toLowerCase()))
}

/** Whether a key with this beginning can have one of the prefixes. */
export function isBeginningAllowed(beginning: string, prefixes: readonly string[] | undefined): boolean {
  const folded = beginning.toLowerCase()
  return (
    isSessionKeyAllowed(beginning, prefixes) ||
    (prefixes ?? []).some((prefix) => prefix.trim().toLowerCase().startsWith(folded))
  )
}

/** Keys are printed, logged and compared: a line break in one is an attack. */
export function isPlainSessionKey(key: string): boolean {
  return key.length <= longestKey && !/\p{Cc}/u.test(key)
}

/** The model of a name: an alias is resolved once, any other name is the model. */
export function toModelName(asked: string, aliases: Readonly<Record<string, string>>): string {
  const name = asked.trim()
  return (Object.hasOwn(aliases, name) ? aliases[name] : undefined) ?? name
}

/** Whether `agents.defaults.models` lists the model. Both may be named by an alias. No list means any. */
export function isModelAllowed(asked: string, { agents, models }: Pick<Config, 'agents' | 'models'>): boolean {
  const allowed = agents.defaults.models
  if (allowed === undefined) return true
  const model = toModelName(asked, models.aliases)
  return allowed.some((name) => toModelName(name, models.aliases) === model)
}
