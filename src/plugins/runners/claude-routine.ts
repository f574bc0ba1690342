// Fires a routine of Claude Code on the web: a new session performs the turn, and its reply cannot be read.
import { z } from 'zod'
import { defineRunner } from '../../define.ts'
import { httpUrl, nonBlank } from './shared/kit.ts'
import { startElsewhere, toLink } from './shared/start-elsewhere.ts'

const options = z.strictObject({
  url: httpUrl.describe('URL of the API trigger of the routine, which ends with /fire.'),
  token: nonBlank.describe('Token of the routine.'),
  timeoutMs: z.int().positive().max(60_000).default(15_000).describe('Milliseconds in which a run must be accepted.'),
})

/** Each call makes a session: there is no key that a second call could repeat, so a call whose answer got lost makes a second one. */
export const claudeRoutineRunner = defineRunner({
  name: 'claude-routine',
  about: 'A routine of Claude Code on the web. A new session performs the turn; its reply stays there.',
  docs: 'https://platform.claude.com/docs/en/api/claude-code/routines-fire',
  options,
  create: ({ url, token, timeoutMs }, { id, fetch }) => ({
    usesWorkspace: false,
    async run({ runId, prompt }, { signal }) {
      const started = await startElsewhere(
        {
          who: `The routine (runners.${id})`,
          url,
          headers: {
            authorization: `Bearer ${token}`,
            'anthropic-version': '2023-06-01',
            'anthropic-beta': 'experimental-cc-routine-2026-04-01',
          },
          body: { text: prompt },
          timeoutMs,
          accepted: 200,
          remedies: {
            400: 'The API may have changed: look for a later version of Hookloom.',
            401: `Set runners.${id}.token to the token of this routine, which is shown once.`,
            404: `Set runners.${id}.url to the URL that the API trigger of the routine shows.`,
          },
          waitsFor: [529],
        },
        { fetch, signal },
      )
      if (started.status !== 'accepted') return started
      const { claude_code_session_id: session, claude_code_session_url: link } = started.body
      const detail = `Forwarded to the routine, whose reply stays in its session.${toLink(link)}`
      return { status: 'forwarded', id: typeof session === 'string' && session !== '' ? session : runId, detail }
    },
  }),
})
