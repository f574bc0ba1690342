// The token with which a GitHub App proves who it is.
// https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { SignJWT } from 'jose'

/** GitHub accepts at most 10 minutes. */
const lifetimeSeconds = 540

export type GitHubAppKey = { readonly appId: string; readonly privateKey: string }

/** `at`: milliseconds since the epoch. The iat is a minute earlier, in case the clocks differ. Returns undefined if Node cannot read the key. */
export async function signGitHubAppToken({ appId, privateKey }: GitHubAppKey, at: number): Promise<string | undefined> {
  const key = readKey(privateKey)
  if (key === undefined) return undefined
  const now = Math.floor(at / 1_000)
  return await new SignJWT({})
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
    .setIssuer(appId)
    .setIssuedAt(now - 60)
    .setExpirationTime(now + lifetimeSeconds)
    .sign(key)
}

function readKey(privateKey: string): KeyObject | undefined {
  try {
    return createPrivateKey(privateKey)
  } catch {
    return undefined
  }
}
