// A mailbox on a fake Google, and the parts of the watcher that read it. Waits end at once.
import { createGmailApi } from '../../../../../src/plugins/sources/gmail/api.ts'
import { createCall } from '../../../../../src/plugins/sources/gmail/call.ts'
import {
  type GmailPayload,
  type GmailState,
  type MailSink,
  toMailKey,
} from '../../../../../src/plugins/sources/gmail/mail.ts'
import type { Sleep } from '../../../../../src/base/retry.ts'
import { type SyncResult, syncOnce } from '../../../../../src/plugins/sources/gmail/sync.ts'
import { createTokens } from '../../../../../src/plugins/sources/gmail/google.ts'
import { GmailConfig, type WatchedGmail } from '../../../../../src/model/config/gmail.ts'
import type { SourceHost } from '../../../../../src/model/source.ts'
import { builtInSenders } from '../../../../../src/gateway/built-in.ts'
import { createVerifier } from '../../../../../src/gateway/proofs/verify.ts'
import { silentLog } from '../../../../../src/base/log.ts'
import { account, client, type FakeGoogle } from '../../../../e2e/fakes/google.ts'

/** The proofs of pushes, as the gateway gives them to a source. */
export function toVerifier(clock: () => number): SourceHost['verifier'] {
  return (settings, fetch) => createVerifier(settings, { now: clock, fetch, senders: builtInSenders })
}

export function toGmail(google: FakeGoogle, more: object = {}): WatchedGmail {
  const gmail = GmailConfig.parse({ account, mode: 'poll', endpoints: google.endpoints, ...more })
  return { ...gmail, account }
}

export const consent = {
  kind: 'consent' as const,
  account,
  clientId: client.client_id,
  clientSecret: client.client_secret,
  refreshToken: 'refresh-1',
  scopes: [],
}

/** A sink that keeps each delivered mail once, by its key. */
export function createMemorySink(): MailSink & { delivered: GmailPayload[]; kept: GmailState | undefined } {
  const keys = new Set<string>()
  const sink = {
    delivered: [] as GmailPayload[],
    kept: undefined as GmailState | undefined,
    state: async () => sink.kept,
    async deliver(payloads: readonly GmailPayload[], state: GmailState) {
      for (const payload of payloads) {
        if (keys.has(toMailKey(payload))) continue
        keys.add(toMailKey(payload))
        sink.delivered.push(payload)
      }
      sink.kept = state
    },
  }
  return sink
}

export type Stage = {
  readonly sink: ReturnType<typeof createMemorySink>
  /** The requested waits, in milliseconds. */
  readonly waits: number[]
  sync(): Promise<SyncResult>
  /** Ids of the mails that arrived. */
  listIds(): string[]
}

export function createStage(google: FakeGoogle, more: object = {}, clock: () => number = Date.now): Stage {
  const waits: number[] = []
  const pause: Sleep = async (ms) => void waits.push(ms)
  const tools = { pause, random: () => 0.5, signal: new AbortController().signal }
  const gmail = toGmail(google, more)
  const tokens = createTokens({
    credentials: consent,
    tokenUrl: gmail.endpoints.oauthToken,
    call: createCall(tools),
    clock,
    scope: '',
  })
  const api = createGmailApi({ call: createCall({ ...tools, tokens }), base: gmail.endpoints.gmail })
  const sink = createMemorySink()
  return {
    sink,
    waits,
    sync: () => syncOnce({ api, sink, gmail, clock, log: silentLog }),
    listIds: () => sink.delivered.map(({ messages: [{ id }] }) => id),
  }
}
