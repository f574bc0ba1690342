// Reports parts of a valid configuration that have no effect or refer to nothing, also those that depend on the built-in runners.
import { normalizeHookName } from '../../core/model/mapping-rules.ts'
import { type ConfigIssue, toIssue } from '../../core/model/issue.ts'
import type { Config } from '../../model/config/config.ts'
import { chooseRunner } from '../../model/config/plan-settings.ts'
import { findConfigWarnings } from '../../model/config/warnings.ts'
import { runners as builtInRunners } from '../../plugins/runners/index.ts'

/** These warnings do not stop a gateway. */
export function findReferenceIssues(config: Config): ConfigIssue[] {
  return [...findConfigWarnings(config), ...findAttachmentIssues(config)]
}

/** Reports a mailbox whose attachments no agent can open, or reach no run. */
function findAttachmentIssues(config: Config): ConfigIssue[] {
  const { hooks } = config
  return (['gmail', 'imap'] as const).flatMap((name) => {
    if (hooks[name]?.attachments !== true) return []
    const why = opensFiles(config) ? describeLostFiles(name, config) : noOpener
    return why === undefined ? [] : [toIssue(['hooks', name, 'attachments'], `has no effect, because ${why}`)]
  })
}

const noOpener =
  'no agent has a runner that opens files. Give one the runner claude or codex, or a runner of the kind "command".'

/** Whether any agent can open files. One with a runner of a plugin may. */
function opensFiles(config: Config): boolean {
  const { agents, runners } = config
  const ids = ['main', ...agents.list.map(({ id }) => id)]
  return ids.some((id) => {
    const name = chooseRunner(config, id)
    const kind = Object.hasOwn(runners, name) ? runners[name]?.kind : undefined
    const definition = builtInRunners.find(({ name: own, ready = {} }) =>
      kind === undefined ? Object.hasOwn(ready, name) : own === kind,
    )
    return definition === undefined ? kind !== undefined : definition.readsFiles === true
  })
}

/** Why no mail of the hook becomes a run; undefined if one may. A transform may choose another action. */
function describeLostFiles(hook: string, { hooks }: Config): string | undefined {
  const takers = hooks.mappings.flatMap((mapping, index) => {
    const { path } = mapping.match
    return path === undefined || normalizeHookName(path) === hook ? [{ mapping, index }] : []
  })
  // what follows a mapping without conditions is never reached
  const last = takers.findIndex(({ mapping: { match } }) => Object.keys(match).every((key) => key === 'path'))
  const reached = last === -1 ? takers : takers.slice(0, last + 1)
  const mayRun = reached.some(({ mapping: { action, transform } }) => action === 'agent' || transform !== undefined)
  const [first] = reached
  if (first === undefined || mayRun || (last === -1 && hooks.presets.length > 0)) return undefined
  const { mapping, index } = first
  return `only a run gets files, and hooks.mappings[${index}] has the action "${mapping.action}". Set its action to "agent".`
}
