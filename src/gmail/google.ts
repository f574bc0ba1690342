// The APIs of one account, with the tokens that open them: a person's consent opens both, a service account speaks for the mailbox on
// one side and for itself on the other.
import type { WatchedGmail } from '../model/gmail-config.ts'
import { createGmailApi, type GmailApi } from './api.ts'
import { type CallTools, createCall, type GoogleCall } from './call.ts'
import type { Credentials } from './credentials.ts'
import { createPubSubApi, type PubSubApi } from './pubsub.ts'
import { createTokens, scopes } from './tokens.ts'

export type Google = {
  readonly gmail: GmailApi
  readonly pubsub: PubSubApi
  /** With the rights of the project. */
  readonly cloudCall: GoogleCall
  /** Without any. */
  readonly plainCall: GoogleCall
}

export function openGoogle(
  { account, endpoints }: Pick<WatchedGmail, 'account' | 'endpoints'>,
  { credentials, clock, tools }: { credentials: Credentials; clock: () => number; tools: CallTools },
): Google {
  const plainCall = createCall(tools)
  const shared = { credentials, tokenUrl: endpoints.oauthToken, call: plainCall, clock }
  const mailTokens = createTokens({ ...shared, scope: scopes.gmail, subject: account })
  const cloudTokens = credentials.kind === 'consent' ? mailTokens : createTokens({ ...shared, scope: scopes.cloud })
  const cloudCall = createCall({ ...tools, tokens: cloudTokens })
  return {
    gmail: createGmailApi({ call: createCall({ ...tools, tokens: mailTokens }), base: endpoints.gmail }),
    pubsub: createPubSubApi({ call: cloudCall, base: endpoints.pubsub }),
    cloudCall,
    plainCall,
  }
}
