// Rules of a mapping about where the result of a run goes: its reply, its verdict, its commit status and its callback.
import type { ChannelName } from '../../core/model/action.ts'
import { findChannelIssues, findUnknownChannelIssues } from './agents-rules.ts'
import { readEndpoints } from './channels.ts'
import type { Config } from './config.ts'
import { type ConfigIssue, type ConfigPath, toIssue } from '../../core/model/issue.ts'
import type { Mapping } from '../../core/model/mapping.ts'
import { isForwarded } from './plan-settings.ts'

/** `at`: the path of the mapping. */
type Place = { readonly config: Config; readonly at: ConfigPath }

export function findResultIssues(mapping: Mapping, agentId: string, { config, at }: Place): ConfigIssue[] {
  const targets = Array.isArray(mapping.to) ? mapping.to : []
  return [
    ...findUnknownChannelIssues(mapping.channel, config, [...at, 'channel']),
    ...targets.flatMap(({ channel }, index) =>
      findUnknownChannelIssues(channel, config, [...at, 'to', index, 'channel']),
    ),
    ...findReplyIssues(mapping, agentId, { config, at }),
    ...findVerdictIssues(mapping, agentId, { config, at }),
    ...findStatusIssues(mapping, config, at),
    ...findEndpointIssues(mapping.callback, config, [...at, 'callback']),
  ]
}

/** Reports a commit status that no channel can set. */
function findStatusIssues({ status, channel, verify }: Mapping, { channels }: Config, at: ConfigPath): ConfigIssue[] {
  if (status === undefined) return []
  if (verify?.scheme === 'linear' || channel === 'linear')
    return [toIssue([...at, 'status'], 'is for commits, and Linear has none. Remove it.')]
  if (channels['github'] !== undefined || channels['gitlab'] !== undefined) return []
  const why = 'needs a channel that sets it. Set channels.github or channels.gitlab.'
  return [toIssue([...at, 'status'], why, ['channels'])]
}

/** Reports an endpoint that does not exist. */
function findEndpointIssues(name: string | undefined, { channels }: Config, at: ConfigPath): ConfigIssue[] {
  const endpoints = readEndpoints(channels)
  if (name === undefined || endpoints.has(name)) return []
  const names = [...endpoints.keys()].map((each) => `"${each}"`)
  const next = names.length === 0 ? 'There are none: add it there.' : `It has ${names.join(', ')}.`
  const why = `is not a name in channels.webhook.endpoints. ${next}`
  return [toIssue(at, why, ['channels', 'webhook'])]
}

/** Reports verdicts of a runner whose replies stay at another gateway. */
function findVerdictIssues(
  { verdicts }: Pick<Mapping, 'verdicts'>,
  agentId: string,
  { config, at }: Place,
): ConfigIssue[] {
  if (verdicts === undefined || !isForwarded(agentId, config)) return []
  const why = `need a reply, and the runner of the agent "${agentId}" is OpenClaw, which keeps it. Remove the key, or name another agent.`
  return [toIssue([...at, 'verdicts'], why)]
}

/** Reports a channel that cannot deliver a reply or a message. A transform may still choose another one. */
function findReplyIssues(
  { action, channel, to, deliver, transform }: Mapping,
  agentId: string,
  { config, at }: Place,
): ConfigIssue[] {
  const isOfOpenClaw = action === 'agent' && isForwarded(agentId, config)
  if (isOfOpenClaw && deliver && Array.isArray(to) && to.length > 1) {
    const why = `is a list, and the runner of the agent "${agentId}" is OpenClaw, which delivers to one recipient. Name one.`
    return [toIssue([...at, 'to'], why)]
  }
  if (transform !== undefined || action === 'wake' || isOfOpenClaw || (action === 'agent' && !deliver)) return []
  if (!Array.isArray(to)) return findTargetIssues({ channel, to }, config, at)
  return to.flatMap((target, index) => findTargetIssues(target, config, [...at, 'to', index]))
}

function findTargetIssues(
  { channel, to }: { channel?: ChannelName | undefined; to?: string | undefined },
  config: Config,
  at: ConfigPath,
): ConfigIssue[] {
  const isWebhook = channel === 'webhook' && config.channels['webhook'] !== undefined
  return isWebhook
    ? findEndpointIssues(to, config, [...at, 'to'])
    : findChannelIssues(channel, config, [...at, 'channel'])
}
