// What a command beside a running gateway reads of the configuration: where the store is, and how the gateway is reached.
import { type ConfigParts, loadConfigParts } from '../../loader/config-parts.ts'
import type { Context } from '../terminal/context.ts'
import { toWarning } from '../terminal/print.ts'

const known = new WeakMap<Context, ConfigParts>()

/** Warns once a command when the rest of the configuration is invalid: these commands work all the same. */
export function findParts(context: Context): ConfigParts {
  const found = known.get(context)
  if (found !== undefined) return found
  const parts = loadConfigParts(context)
  known.set(context, parts)
  if (parts.problem !== undefined) context.note(toWarning(parts.problem))
  return parts
}
