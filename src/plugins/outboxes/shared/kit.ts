// What outboxes share with the rest of the package, and the keys of their sections.
import { z } from 'zod'
import { apiUrl, nonBlank } from '../../../core/model/values.ts'

export { signGitHubAppToken } from '../../../base/github-app.ts'
export { tryParseJson } from '../../../base/json.ts'
export { ApiDenial, isSuccess, tenMinutes, toSentHeaders } from '../../../model/outbox.ts'
export { Problem } from '../../../core/model/problem.ts'
export { apiUrl, httpUrl, nonBlank, pathPart, senderId } from '../../../core/model/values.ts'
export { parseApiAnswer } from './call.ts'

/** The id or the path of a project or a group. */
export const numberOrPath = z.union([z.int().positive().transform(String), nonBlank]).optional()
export const apiUrlWithDefault = (url: string) =>
  apiUrl.default(url).describe('URL of the API. Change it only for a proxy or tests.')
export const token = nonBlank.describe('Credential of the API of the sender, such as "${GITHUB_RECOVER_TOKEN}".')
