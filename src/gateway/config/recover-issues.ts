// Checks `recover` of the mappings by the outboxes of their senders.
import type { Config } from '../../model/config/config.ts'
import type { ConfigIssue, ConfigPath } from '../../core/model/issue.ts'
import type { Recover } from '../../core/model/recover.ts'
import { toConfigIssues } from './issues.ts'
import { outboxNames, RecoverSchema } from './keys.ts'

/** The sender of another plugin is not reported: the plugin checks its own keys when it is loaded. */
export function findRecoverIssues(config: Config): ConfigIssue[] {
  const { plugins, hooks } = config
  return hooks.mappings.flatMap(({ recover }, index) =>
    recover === undefined || (plugins.length > 0 && !outboxNames.includes(recover.sender))
      ? []
      : listIssues(recover, { at: ['hooks', 'mappings', index, 'recover'], input: config }),
  )
}

/** The first fault of `recover` in a mapping of a preset. */
export function findRecoverFault(recover: Recover | undefined): string | undefined {
  if (recover === undefined || !outboxNames.includes(recover.sender)) return undefined
  return listIssues(recover, { at: ['recover'], input: { recover } })[0]?.text
}

/** `input`: what has `recover` at the path `at`. */
function listIssues(
  recover: Recover,
  { at, input }: { readonly at: ConfigPath; readonly input: object },
): ConfigIssue[] {
  const { error } = RecoverSchema.safeParse(recover)
  return (error?.issues ?? []).flatMap((issue) => toConfigIssues({ ...issue, path: [...at, ...issue.path] }, input))
}
