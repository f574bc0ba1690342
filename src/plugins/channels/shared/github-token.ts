// The credential of a request to GitHub: a fixed token, or the token of the installation of a GitHub App.
// https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-an-installation-access-token-for-a-github-app
import { z } from 'zod'
import { type AccessToken, createTokenCache, type TokenCache } from '../../../base/access-token.ts'
import { type GitHubAppKey, signGitHubAppToken } from '../../../base/github-app.ts'
import { type ChannelTools, type NoToken, readSuccess, sendJson, toFailureBeforePost } from './http.ts'
import { readGitHubFailure, toGitHubHeaders } from './github-failure.ts'

const Installation = z.object({ id: z.int() })
const TokenAnswer = z.object({ token: z.string().min(1), expires_at: z.iso.datetime({ offset: true }) })

const maxInstallations = 100

/** How the channel reaches GitHub. */
type GitHubAccess = {
  readonly token?: string | undefined
  readonly appId?: string | undefined
  readonly privateKey?: string | undefined
  readonly baseUrl: string
  readonly timeoutMs: number
}

export type GitHubCredential = {
  /** The token for a repository (`<owner>/<repository>`). */
  get(repository: string): Promise<AccessToken | NoToken>
  /** Called when a token was refused. Returns true if the next call fetches a new one. */
  drop(repository: string, token: string): boolean
}

export function createGitHubCredential(
  config: GitHubAccess,
  tools: ChannelTools & { readonly clock: () => number },
): GitHubCredential {
  const { token = '', appId, privateKey } = config
  if (appId === undefined || privateKey === undefined) {
    return { get: async () => ({ kind: 'token', token, until: Infinity }), drop: () => false }
  }
  const app = { appId, privateKey }
  /** The tokens, by owner: the App is installed once for each owner. */
  const installations = new Map<string, TokenCache<NoToken>>()

  function findCache(repository: string): TokenCache<NoToken> {
    const owner = (repository.split('/')[0] ?? '').toLowerCase()
    const known = installations.get(owner)
    if (known !== undefined) return known
    const [oldest] = installations.keys()
    if (installations.size >= maxInstallations && oldest !== undefined) installations.delete(oldest)
    const cache = createTokenCache(tools.clock, () => fetchToken(repository, { app, config, ...tools }))
    installations.set(owner, cache)
    return cache
  }

  return {
    get: (repository) => findCache(repository).get(),
    drop(repository, refused) {
      findCache(repository).drop(refused)
      return true
    },
  }
}

type AppTools = ChannelTools & {
  readonly app: GitHubAppKey
  readonly config: GitHubAccess
  readonly clock: () => number
}

async function fetchToken(repository: string, { app, config, clock, fetch }: AppTools): Promise<AccessToken | NoToken> {
  const signed = await signGitHubAppToken(app, clock())
  if (signed === undefined) {
    const detail = 'channels.github.privateKey is not a private key in PEM format. Download it again.'
    return { kind: 'failed', failed: { kind: 'permanent', detail } }
  }
  const call = (method: 'GET' | 'POST', path: string) =>
    sendJson({
      method,
      url: `${config.baseUrl}${path}`,
      headers: toGitHubHeaders(signed),
      timeoutMs: config.timeoutMs,
      // several messages may wait for the same token
      signal: new AbortController().signal,
      fetch,
    })
  const found = await call('GET', `/repos/${repository}/installation`)
  const installation = readSuccess(found, Installation)
  if (installation === undefined) return { kind: 'failed', failed: toFailureBeforePost(readGitHubFailure(found)) }
  const outcome = await call('POST', `/app/installations/${installation.id}/access_tokens`)
  const granted = readSuccess(outcome, TokenAnswer)
  if (granted === undefined) return { kind: 'failed', failed: toFailureBeforePost(readGitHubFailure(outcome)) }
  return { kind: 'token', token: granted.token, until: Date.parse(granted.expires_at) }
}
