// Triggers a workspace agent of ChatGPT: it performs the turn in ChatGPT, and its reply cannot be read.
import { z } from 'zod'
import { defineRunner } from '../../define.ts'
import { httpUrl, nonBlank } from './shared/kit.ts'
import { startElsewhere, toLink } from './shared/start-elsewhere.ts'

const options = z.strictObject({
  trigger: z
    .string()
    .regex(/^[\w-]+$/, 'must be the id of an API channel, such as agtch_complaints_123')
    .describe('Id of the API channel of the agent, which begins with agtch_.'),
  token: nonBlank.describe('Access token with the scope Workspace Agents.'),
  baseUrl: httpUrl.default('https://api.chatgpt.com/v1').describe('Where the API begins.'),
  timeoutMs: z.int().positive().max(60_000).default(15_000).describe('Milliseconds in which a run must be accepted.'),
})

/** The session key is the key of the conversation. With the same `Idempotency-Key`, a repeated request starts nothing. */
export const workspaceAgentRunner = defineRunner({
  name: 'workspace-agent',
  about: 'A workspace agent of ChatGPT. It performs the turn; its reply stays there.',
  docs: 'https://developers.openai.com/workspace-agents/trigger-runs',
  options,
  create: ({ trigger, token, baseUrl, timeoutMs }, { id, fetch }) => ({
    usesWorkspace: false,
    async run({ runId, sessionKey, prompt }, { signal }) {
      const started = await startElsewhere(
        {
          who: `The workspace agent (runners.${id})`,
          url: `${baseUrl}/workspace_agents/${trigger}/trigger`,
          headers: { authorization: `Bearer ${token}`, 'idempotency-key': runId },
          body: { conversation_key: sessionKey, input: prompt },
          timeoutMs,
          accepted: 202,
          remedies: {
            401: `Set runners.${id}.token to an access token with the scope Workspace Agents that has not expired.`,
            403: 'Share the agent with the user of the token.',
            404: `Set runners.${id}.trigger to the id of the API channel of a published agent.`,
            409: 'The channel or the agent cannot run now: look at it in ChatGPT.',
          },
          waitsFor: [409],
        },
        { fetch, signal },
      )
      if (started.status !== 'accepted') return started
      const detail = `Forwarded to the workspace agent, whose reply stays in ChatGPT.${toLink(started.body['conversation_url'])}`
      return { status: 'forwarded', id: runId, detail }
    },
  }),
})
