// The default runner until a model is configured. It uses no network and no model, and its reply says so. Its runs are marked as simulated.
import { defineRunner, type RunRequest } from '../../define.ts'
import { cut, toLine } from './shared/kit.ts'

const maxLines = 5
const maxLineChars = 200

export const echoRunner = defineRunner({
  name: 'echo',
  about: 'Asks no model, and says so.',
  ready: { echo: {} },
  create: () => ({
    run: async (request) => ({ status: 'ok', text: formatEcho(request), simulated: true }),
    usesWorkspace: false,
  }),
})

function formatEcho({ agentId, sessionKey, model, thinking, prompt, message, action }: RunRequest): string {
  const settings = [
    `session ${sessionKey}`,
    ...(model === undefined ? [] : [`model ${model}`]),
    ...(thinking === undefined ? [] : [`thinking ${thinking}`]),
  ].join(', ')
  const what = action === undefined ? 'This heartbeat, the turn in which the agent hears what happened,' : 'This run'
  const asked = `${what} would have sent ${prompt.length} characters to agent ${agentId} (${settings}).`
  if (message === '') return `No model is configured, so nothing was asked. ${asked}`
  return [
    `No model is configured, so nothing was asked. ${asked} The message begins:`,
    ...toFirstLines(message).map((line) => `> ${line}`),
  ].join('\n')
}

/** The first lines that are not blank, each without repeated white space and cut; an ellipsis replaces the rest. */
function toFirstLines(message: string): string[] {
  const lines = message
    .split(/\r\n|\r|\n/, 10 * maxLines)
    .map((line) => cut(toLine(line.slice(0, 1_000)), maxLineChars))
  const filled = lines.filter((line) => line !== '')
  return filled.length > maxLines ? [...filled.slice(0, maxLines), '…'] : filled
}
