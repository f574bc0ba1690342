// The calls of the hook port that take no requests of senders. Their paths follow `hooks.path`.
import { AwaitBody, AwaitResource } from './await.ts'
import type { DocumentedCall } from './call.ts'
import { RunResource } from './run.ts'

const show = 'Shows a run that this token started. With "Accept: text/event-stream" it sends each change.'
const run = { right: 'runs', query: {}, answer: RunResource } as const

/** `right`: of a token with few rights. */
export const hookCalls = {
  'GET /runs/{runId}': { ...run, summary: show },
  'DELETE /runs/{runId}': { ...run, summary: 'Cancels a run that this token started.' },
  'POST /{hook}/await': {
    right: 'send:<hook>/await',
    query: {},
    summary: 'Waits for the next delivery of a hook whose run has a session key. With the same id, the wait goes on.',
    body: { schema: AwaitBody },
    answer: AwaitResource,
  },
} as const satisfies Readonly<Record<string, DocumentedCall>>
