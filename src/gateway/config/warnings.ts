// Checks a valid configuration for risks. No risk stops a gateway: `hookloom doctor` prints the findings.
import { statSync } from 'node:fs'
import { basename } from 'node:path'
import { isLoopbackHost } from '../../base/http.ts'
import { quoteShellWord } from '../../base/shell.ts'
import { hasNoChannel, noChannelWarning } from '../../model/config/agents-rules.ts'
import { findReferenceIssues } from './references.ts'
import type { Config } from '../../model/config/config.ts'
import { findMappingAgentId } from '../../model/config/rules.ts'
import { formatPlacedIssue } from './config.ts'
import { toDottedPath } from '../../core/model/issue.ts'
import { chooseRunner, listHookTokens } from '../../model/config/plan-settings.ts'

export type ConfigFinding = { readonly name: string; readonly ok: boolean; readonly detail: string }
/** `mode`: the permission bits, e.g. 0o600. */
export type FileMode = { readonly file: string; readonly mode: number }

/** The number of characters from which on doctor gives no warning: more than the 16 bytes that the configuration requires. */
const minTokenChars = 24

/** The user and the group that read the files. */
type Reader = { readonly platform: NodeJS.Platform; readonly uid: number | undefined; readonly gid: number | undefined }

/**
 * The permission bits of the files that exist. An empty list on Windows, where the bits mean nothing. A file owned by root that the reader can read
 * through its group, such as a Kubernetes secret, counts as readable by its owner only.
 */
export function readFileModes(
  files: readonly string[],
  { platform, uid, gid }: Reader = { platform: process.platform, uid: process.getuid?.(), gid: process.getgid?.() },
): FileMode[] {
  if (platform === 'win32') return []
  return files.flatMap((file) => {
    const stats = statSync(file, { throwIfNoEntry: false })
    if (stats === undefined) return []
    const isReadThroughGroup = stats.uid === 0 && uid !== 0 && stats.gid === gid
    return [{ file, mode: stats.mode & (isReadThroughGroup ? 0o737 : 0o777) }]
  })
}

/** Runs every check, in a fixed order. `text`: the text of hookloom.jsonc, in which keys are located. No detail shows a token. */
export function checkRisks(
  config: Config,
  { files, text = '{}' }: { files: readonly FileMode[]; text?: string },
): ConfigFinding[] {
  const { hooks, server } = config
  return [
    checkTokenLength(config),
    checkTokenReuse(config),
    buildFinding(
      'trusted-proxies',
      isLoopbackHost(server.host) || server.trustedProxies.length > 0,
      'failed tokens are counted for each client address',
      `server.host is ${server.host} and server.trustedProxies is empty: behind a proxy, all clients share one limit of failed tokens. Add the proxy to server.trustedProxies, or listen on 127.0.0.1.`,
    ),
    buildFinding(
      'session-key-prefixes',
      (hooks.allowedSessionKeyPrefixes ?? []).length > 0,
      'hooks.allowedSessionKeyPrefixes limits the session keys',
      'hooks.allowedSessionKeyPrefixes is not set: mappings and transforms can use any session. Set it to ["hook:"].',
    ),
    buildFinding(
      'default-session-key',
      hooks.defaultSessionKey !== undefined,
      'hooks.defaultSessionKey is set',
      'hooks.defaultSessionKey is not set: each run without a session key starts a new session. Set it, for example to "hook:inbox".',
    ),
    buildFinding(
      'request-session-keys',
      !hooks.allowRequestSessionKey,
      'requests cannot choose their session key',
      'hooks.allowRequestSessionKey is true: anyone with the hook token can choose the session.',
    ),
    checkTurnLimit(config),
    checkUnsafeContent(config),
    checkFileModes(files),
    buildFinding('channels', !hasNoChannel(config), 'a channel is configured for replies', noChannelWarning),
    ...checkReferences(config, text),
    ...checkSharing(config),
  ]
}

/** The features whose state gateways on one database do not share. */
function checkSharing({ store, agents, runners, hooks }: Config): ConfigFinding[] {
  if (store.url === undefined) return []
  const used = [agents.defaults.runner, ...agents.list.map(({ runner }) => runner)]
  const isCommand = (name: string) =>
    name === 'claude' || name === 'codex' || (Object.hasOwn(runners, name) && runners[name]?.kind === 'command')
  const commands = used.filter((name) => name !== undefined && isCommand(name))
  const parts = [
    'the workspaces of the agents',
    ...(commands.length === 0 ? [] : [`the session files of ${[...new Set(commands)].join(' and ')}`]),
    ...(hooks.gmail === undefined ? [] : ['the Gmail credentials (state/gmail-consent.json, or serviceAccountKey)']),
  ]
  const list = parts.length === 1 ? parts[0] : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`
  return [
    {
      name: 'several-gateways',
      ok: true,
      detail:
        `gateways that share store.url need the same configuration and modules; ${list} are on the disk of each gateway: ` +
        'share these folders between the machines, or pin what needs them to one gateway',
    },
  ]
}

function checkReferences(config: Config, text: string): ConfigFinding[] {
  const name = 'references'
  const issues = findReferenceIssues(config)
  if (issues.length === 0) return [{ name, ok: true, detail: 'every agent, model, channel and mapping can be used' }]
  return issues.map((issue) => ({ name, ok: false, detail: formatPlacedIssue(issue, text) }))
}

function checkTokenLength({ hooks }: Config): ConfigFinding {
  const [token] = listHookTokens(hooks).toSorted((one, other) => one.length - other.length)
  if (token === undefined) return { name: 'token-length', ok: true, detail: 'hooks.token is not set' }
  return buildFinding(
    'token-length',
    token.length >= minTokenChars,
    `hooks.token has at least ${minTokenChars} characters`,
    `hooks.token has ${token.length} characters, fewer than ${minTokenChars}: it can be guessed. Make one with: openssl rand -hex 32`,
  )
}

function checkTokenReuse(config: Config): ConfigFinding {
  const tokens = new Set<unknown>(
    [
      ...listHookTokens(config.hooks),
      config.gateway.token,
      ...Object.values(config.tokens).map(({ token }) => token),
    ].filter((token) => token !== undefined),
  )
  const places = listLeaves(config, [])
    .filter(({ value }) => tokens.has(value))
    .map(({ path }) => toDottedPath(path))
    .filter((path) => !/^(hooks\.tokens?(\[\d\])?|gateway\.token|tokens\.[\w.-]+\.token)$/.test(path))
  return buildFinding(
    'token-reuse',
    places.length === 0,
    'the tokens are not used elsewhere in the configuration',
    `a token is also the value of ${places.join(', ')}: use a different secret for each.`,
  )
}

/** Names the mappings whose requests share one session, because their key has no field: some of these requests wait in a busy hour. */
function checkTurnLimit(config: Config): ConfigFinding {
  const { mappings } = config.hooks
  const limited = mappings.flatMap(({ sessionKey, ...mapping }, index) => {
    const agentId = findMappingAgentId(mapping, config)
    const { list, defaults } = config.agents
    const max = list.find(({ id }) => id === agentId)?.maxTurnsPerHour ?? defaults.maxTurnsPerHour
    if (sessionKey === undefined || sessionKey.includes('{{') || max === 0) return []
    if (chooseRunner(config, agentId) === 'echo') return []
    return [`hooks.mappings[${index}] (at most ${max} in an hour)`]
  })
  const detail =
    limited.length === 0
      ? 'no mapping has one session for all of its requests'
      : `one session for all requests, so some turns may wait: ${limited.join(', ')}. To let more start, put a field into sessionKey, or raise maxTurnsPerHour of the agent`
  return { name: 'turns-per-hour', ok: true, detail }
}

function checkUnsafeContent({ hooks }: Config): ConfigFinding {
  const places = listLeaves({ hooks }, [])
    .filter(({ path, value }) => path.at(-1) === 'allowUnsafeExternalContent' && value === true)
    .map(({ path }) => toDottedPath(path))
  return buildFinding(
    'unsafe-content',
    places.length === 0,
    'all external text reaches agents inside the boundary',
    `${places.join(', ')} ${places.length === 1 ? 'is' : 'are'} true: external text reaches agents as if you had written it.`,
  )
}

function checkFileModes(files: readonly FileMode[]): ConfigFinding {
  const open = files.filter(({ mode }) => (mode & 0o077) !== 0)
  const names = open.map(({ file, mode }) => `${basename(file)} (mode ${mode.toString(8).padStart(3, '0')})`)
  return buildFinding(
    'file-permissions',
    open.length === 0,
    'only their owner can read the configuration files',
    `${names.join(', ')} can be read or written by other users. Run: chmod 600 ${open.map(({ file }) => quoteShellWord(file)).join(' ')}`,
  )
}

function buildFinding(name: string, ok: boolean, good: string, bad: string): ConfigFinding {
  return { name, ok, detail: ok ? good : bad }
}

export function listLeaves(
  value: unknown,
  path: readonly (string | number)[],
): { path: readonly (string | number)[]; value: unknown }[] {
  if (Array.isArray(value)) return value.flatMap((item: unknown, index) => listLeaves(item, [...path, index]))
  if (typeof value !== 'object' || value === null) return [{ path, value }]
  return Object.entries(value).flatMap(([key, item]) => listLeaves(item, [...path, key]))
}
