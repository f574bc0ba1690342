// What sources share with the rest of the package.
import type { SourceDefinition } from '../../../model/source.ts'

export { createTokenCache, type TokenCache } from '../../../base/access-token.ts'
export { findErrorCode } from '../../../base/exceptions.ts'
export { writeStateFile } from '../../../base/files.ts'
export { isCrossSite, readLimitedBody, readRetryAfterMs } from '../../../base/http.ts'
export { tryParseJson } from '../../../base/json.ts'
export type { Log } from '../../../base/log.ts'
export { type Sleep, sleepUnlessAborted, toBackoffMs } from '../../../base/retry.ts'
export { cut, toPrintableLine } from '../../../base/text.ts'
export { Problem } from '../../../core/model/problem.ts'
export type { Verifier } from '../../../core/model/verifier.ts'
export { minRenewMinutes } from '../../../model/config/gmail-modes.ts'
export { GmailConfig, type GmailEndpoints, isWatched, type WatchedGmail } from '../../../model/config/gmail.ts'
export type { PinnedFetch } from '../../../model/proof.ts'
export type { SourceDefinition, SourceHost, SourceWatch } from '../../../model/source.ts'

/** Declares a source: what the gateway watches and fetches itself, such as a mailbox. */
export function defineSource<Options>(source: SourceDefinition<Options>): SourceDefinition<Options> {
  return source
}
