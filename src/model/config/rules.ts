// Rules of a configuration beyond the types of its keys. Pure: templates, presets and modules are checked where they are loaded.
import { isLoopbackHost } from '../../base/http.ts'
import { findAgentIssues, findModelNameIssues, findAllowedModelIssues } from './agents-rules.ts'
import { findBudgetIssues, findMappingBudgetIssues } from './budget-rules.ts'
import { readEndpoints } from './channels.ts'
import type { Config } from './config.ts'
import {
  type ConfigIssue,
  type ConfigPath,
  findDuplicateIssues,
  toDottedPath,
  toIssue,
} from '../../core/model/issue.ts'
import { findFlowIssues, findLimitIssues } from '../../core/model/flow.ts'
import type { Mapping } from '../../core/model/mapping.ts'
import { findConditionIssues, normalizeHookName, findKeyUseIssues } from '../../core/model/mapping-rules.ts'
import { findResultIssues } from './result-rules.ts'
import { isAgentAllowed, isBeginningAllowed, isPlainSessionKey, isSessionKeyAllowed } from './permission.ts'
import { decodeSecret, explainShortSecret } from './secret-length.ts'
import { findAdminRight } from './tokens.ts'
import { findServedSection } from '../runner.ts'
import type { SecretEncoding } from '../../core/model/verify.ts'
import { findModelFault, findDefaultAgentId, listHookTokens, isModelAllowed } from './plan-settings.ts'

const builtInHooks = ['wake', 'agent']

export function findConfigIssues(config: Config): ConfigIssue[] {
  return [
    ...findTokenIssues(config),
    ...findAdminIssues(config),
    ...findSecretIssues(config),
    ...findStoreIssues(config),
    ...findDefaultKeyIssues(config),
    ...findAgentIssues(config),
    ...findAliasIssues(config),
    ...findBudgetIssues(config),
    ...findSharedLimitIssues(config),
    ...findDuplicateIssues(
      config.hooks.mappings.map((mapping) => mapping.id),
      (index) => ['hooks', 'mappings', index, 'id'],
    ),
    ...config.hooks.mappings.flatMap((mapping, index) =>
      findMappingIssues(mapping, config, ['hooks', 'mappings', index]),
    ),
    ...findModelIssues(config.hooks.gmail ?? {}, config, ['hooks', 'gmail', 'model']),
  ]
}

function findSharedLimitIssues({ agents, hooks, limits }: Config): ConfigIssue[] {
  return [
    ...findLimitIssues(agents.defaults, limits, ['agents', 'defaults']),
    ...agents.list.flatMap((agent, index) => findLimitIssues(agent, limits, ['agents', 'list', index])),
    ...findFlowIssues({ ...hooks.agent, action: 'agent' }, limits, ['hooks', 'agent', 'flow']),
  ]
}

/** The rules for one mapping of `hooks.mappings` or of a preset. `at` is its path. */
export function findMappingIssues(mapping: Mapping, config: Config, at: ConfigPath): ConfigIssue[] {
  const { hooks } = config
  const issues: ConfigIssue[] = []
  const hook = normalizeHookName(mapping.match.path ?? '')
  if (builtInHooks.includes(hook)) {
    issues.push(
      toIssue(
        [...at, 'match', 'path'],
        `is the built-in hook "${hook}", which no mapping overrides. Give it another name.`,
      ),
    )
  }
  const served = findServedSection(hook, config.runners)
  if (served?.rest === '') {
    issues.push(
      toIssue(
        [...at, 'match', 'path'],
        `is the path of the requests to runners.${served.section}. Give it another name.`,
      ),
    )
  }
  if (mapping.recover !== undefined && hook === '') {
    issues.push(toIssue([...at, 'recover'], 'needs match.path, which names the hook of the recovered deliveries.'))
  }
  if (mapping.verify?.scheme === 'url-secret' && hook === '') {
    issues.push(toIssue([...at, 'verify'], 'needs match.path: the secret follows it in the URL.'))
  }
  issues.push(...findConditionIssues(mapping, hooks.path, at), ...findKeyUseIssues(mapping, at))
  issues.push(...findFlowIssues(mapping, config.limits, [...at, 'flow']))
  issues.push(...findSessionKeyIssues(mapping.sessionKey, config, [...at, 'sessionKey']))
  const hasKey = mapping.sessionKey !== undefined || hooks.defaultSessionKey !== undefined
  if (
    mapping.action === 'agent' &&
    mapping.sessionMode === 'persistent' &&
    !hasKey &&
    mapping.transform === undefined
  ) {
    issues.push(
      toIssue(
        [...at, 'sessionMode'],
        'is "persistent" but no session is named. Set sessionKey or hooks.defaultSessionKey.',
      ),
    )
  }
  if (mapping.agentId !== undefined && !isAgentAllowed(mapping.agentId.trim(), hooks.allowedAgentIds)) {
    issues.push(
      toIssue([...at, 'agentId'], 'is not in hooks.allowedAgentIds, so every delivery would be refused. Add it there.'),
    )
  }
  const agentId = findMappingAgentId(mapping, config)
  return [
    ...issues,
    ...findModelIssues(mapping, config, [...at, 'model']),
    ...findMappingBudgetIssues(mapping, { agentId, config, at }),
    ...findResultIssues(mapping, agentId, { config, at }),
  ]
}

function findTokenIssues({ hooks, gateway, tokens: scoped }: Config): ConfigIssue[] {
  if (hooks.token !== undefined && hooks.tokens !== undefined) {
    return [toIssue(['hooks', 'tokens'], 'and hooks.token are both set. Remove one of them.')]
  }
  const hookTokens = listHookTokens(hooks)
  const missing = toIssue(
    ['hooks', 'token'],
    'is required when hooks.enabled is true. Set it to "${HOOKLOOM_TOKEN}" and put the value into .env.',
  )
  const given = [
    ...hookTokens.map((token, index) => ({
      at: hooks.tokens === undefined ? ['hooks', 'token'] : ['hooks', 'tokens', index],
      token,
    })),
    ...Object.entries(scoped).map(([name, { token }]) => ({ at: ['tokens', name, 'token'], token })),
  ]
  const isSpaced = gateway.token !== undefined && gateway.token !== gateway.token.trim()
  const spaced = toIssue(['gateway', 'token'], 'must have no white space around it, because a header carries it.')
  return [
    ...(isSpaced ? [spaced] : []),
    ...(hookTokens.length === 0 && hooks.enabled ? [missing] : []),
    ...given.flatMap(({ at, token }, index) => {
      const earlier = [
        { at: ['gateway', 'token'], token: gateway.token ?? '' },
        // two equal hook tokens are harmless
        ...given.slice(0, index).filter((each) => each.at[0] === 'tokens' || at[0] === 'tokens'),
      ]
      return findTokenFaults(at, token, earlier)
    }),
    ...Object.entries(scoped).flatMap(([name, { may }]) =>
      gateway.token === undefined && findAdminRight(may) !== undefined
        ? [
            toIssue(
              ['tokens', name, 'may'],
              'has a right on the admin port, which needs gateway.token. Set it in .env.',
            ),
          ]
        : [],
    ),
  ]
}

function findTokenFaults(
  at: ConfigPath,
  given: string,
  earlier: readonly { readonly at: ConfigPath; readonly token: string }[],
): ConfigIssue[] {
  const token = given.trim()
  const same = earlier.find((each) => each.token.trim() === token)
  const issues: ConfigIssue[] = []
  if (same !== undefined) {
    const make = 'Make one with: openssl rand -hex 32'
    issues.push(toIssue(at, `must differ from ${toDottedPath(same.at)}, found the same value. ${make}`))
  }
  // a header allows no other characters, so every request would be refused
  if (!/^[\x20-\x7e]+$/.test(token) || token !== given) {
    issues.push(toIssue(at, 'must be ASCII without spaces around it, because a header carries it.'))
  }
  return issues
}

/** Other machines can reach the admin port if it listens on their network, or if a proxy forwards requests for one of its names. */
function findAdminIssues({ server: { adminHost, adminNames }, gateway }: Config): ConfigIssue[] {
  if (gateway.token !== undefined) return []
  const need = 'needs gateway.token, because others can reach the admin port. Set the token in .env.'
  return [
    ...(isLoopbackHost(adminHost) ? [] : [toIssue(['server', 'adminHost'], `is ${adminHost}, which ${need}`)]),
    ...(adminNames.length === 0 ? [] : [toIssue(['server', 'adminNames'], need)]),
  ]
}

/** Checks secrets that the operator chooses. Secrets of senders are checked where their schemes are known. */
function findSecretIssues({ hooks, gateway, tokens, channels }: Config): ConfigIssue[] {
  const chosen: readonly [ConfigPath, string | undefined, SecretEncoding?][] = [
    [['hooks', 'token'], hooks.token],
    ...(hooks.tokens ?? []).map((token, index): [ConfigPath, string] => [['hooks', 'tokens', index], token]),
    [['gateway', 'token'], gateway.token],
    ...Object.entries(tokens).map(([name, { token }]): [ConfigPath, string] => [['tokens', name, 'token'], token]),
    ...[...readEndpoints(channels)].map(([name, { secret }]): [ConfigPath, string, SecretEncoding] => [
      ['channels', 'webhook', 'endpoints', name, 'secret'],
      secret,
      secret.startsWith('whsec_') ? 'base64' : 'utf8',
    ]),
  ]
  return chosen.flatMap(([at, secret, encoding]) => {
    const bytes = secret && decodeSecret(secret, encoding, 'whsec_')
    const why = bytes && explainShortSecret(bytes.length, encoding && { encoding })
    return why ? [toIssue(at, why)] : []
  })
}

function findStoreIssues({ store: { file, url } }: Config): ConfigIssue[] {
  if (file === undefined || url === undefined) return []
  return [toIssue(['store', 'url'], 'and store.file are both set. Remove one of them: a gateway has one store.')]
}

function findDefaultKeyIssues(config: Config): ConfigIssue[] {
  const key = config.hooks.defaultSessionKey
  const at = ['hooks', 'defaultSessionKey']
  if (key?.includes('{{') === true) return [toIssue(at, 'must be a fixed key, found a template.')]
  return findSessionKeyIssues(key, config, at)
}

/** Checks a fixed key. For a template, only the fixed text at its beginning is checked. */
function findSessionKeyIssues(key: string | undefined, { hooks }: Config, at: ConfigPath): ConfigIssue[] {
  if (key === undefined) return []
  const [beginning = '', ...rest] = key.trimStart().split('{{')
  const isTemplate = rest.length > 0
  if (!isTemplate && !isPlainSessionKey(key)) {
    return [toIssue(at, 'must have at most 512 characters and no control characters.')]
  }
  if (isTemplate && beginning === '') {
    if (hooks.allowRequestSessionKey) return []
    return [toIssue(at, 'must begin with literal text, such as "hook:", or the sender chooses the whole key.')]
  }
  const prefixes = hooks.allowedSessionKeyPrefixes
  if (isTemplate ? isBeginningAllowed(beginning, prefixes) : isSessionKeyAllowed(key.trim(), prefixes)) return []
  const listed = (prefixes ?? []).map((prefix) => JSON.stringify(prefix)).join(', ')
  return [toIssue(at, `must begin with one of hooks.allowedSessionKeyPrefixes (${listed}).`)]
}

function findModelIssues(mapping: Pick<Mapping, 'agentId' | 'model'>, config: Config, at: ConfigPath): ConfigIssue[] {
  const { model } = mapping
  if (model === undefined) return []
  if (!isModelAllowed(model, config)) {
    return [toIssue(at, 'is not in agents.defaults.models, so every delivery would be refused. Add it there.')]
  }
  return findModelFault(model, findMappingAgentId(mapping, config), config) === undefined
    ? []
    : findModelNameIssues(model, config, at)
}

/** The agent of a mapping. The default agent replaces an unknown one. */
export function findMappingAgentId({ agentId }: Pick<Mapping, 'agentId'>, config: Config): string {
  const named = agentId?.trim()
  return config.agents.list.find(({ id }) => id === named)?.id ?? findDefaultAgentId(config)
}

function findAliasIssues(config: Config): ConfigIssue[] {
  const { models } = config
  const folded = Object.keys(models.aliases).map((alias) => alias.toLowerCase())
  return Object.entries(models.aliases).flatMap(([alias, model], index) => {
    const at = ['models', 'aliases', alias]
    if (folded.indexOf(alias.toLowerCase()) < index) {
      return [toIssue(at, 'is set twice: aliases ignore case. Remove one of them.')]
    }
    if (Object.hasOwn(models.aliases, model.trim())) {
      return [toIssue(at, 'names an alias. Name the model itself, as <provider>/<model>.')]
    }
    if (!/^[^/\s]+\/\S+$/.test(model)) return [toIssue(at, 'must be <provider>/<model>.')]
    return alias.includes('/') || alias.trim() === '' || alias !== alias.trim()
      ? [toIssue(at, 'must have a short name: not blank, without "/" and without spaces around it.')]
      : findAllowedModelIssues(model, config, at)
  })
}
