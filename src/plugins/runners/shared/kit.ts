// What runners share with the rest of the package.
export { findErrorCode } from '../../../base/exceptions.ts'
export { isLoopbackHost, readLimitedBody, readRetryAfterMs, toRetryWait } from '../../../base/http.ts'
export { isJsonObject, type JsonObject, tryParseJson } from '../../../base/json.ts'
export { createSealKeys, openSealed, sealParts } from '../../../base/sealing.ts'
export { createSerialQueue } from '../../../base/serial.ts'
export { abortAfter, sleepUntilAborted, withDeadline } from '../../../base/time.ts'
export { cut, toPrintableLine } from '../../../base/text.ts'
export { toLine } from '../../../boundary/boundary.ts'
export type { AgentAction, ChannelName, Thinking } from '../../../core/model/action.ts'
export { firstByteDefaults, type ProviderConfig } from '../../../model/config/agents.ts'
export { hopsHeader } from '../../../core/model/hops.ts'
export { Problem } from '../../../core/model/problem.ts'
export type { Usage, VerdictForm } from '../../../model/job.ts'
export {
  permanentFailure,
  retryableFailure,
  type RunFailure,
  type RunResult,
  unavailableFailure,
} from '../../../model/runner.ts'
export { httpUrl, nonBlank } from '../../../core/model/values.ts'
