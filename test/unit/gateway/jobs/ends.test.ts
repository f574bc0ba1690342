// The runner and the channel that need no account: echo and console.
import { describe, expect, test } from 'vitest'
import { consoleChannel } from '../../../../src/plugins/channels/console.ts'
import { openChannel } from '../../plugins/channels/stage.ts'
import { echoRunner } from '../../../../src/plugins/runners/echo.ts'
import { createRunner } from '../../plugins/runners/stage.ts'
import type { RunRequest } from '../../../../src/model/runner.ts'

async function runEcho(request: Partial<RunRequest>): Promise<string> {
  const full = {
    runId: 'r',
    attempt: 1,
    agentId: 'ops',
    sessionKey: 'hook:a',
    model: undefined,
    thinking: undefined,
    system: undefined,
    workspace: undefined,
    state: undefined,
    action: undefined,
    history: [],
    prompt: 'x'.repeat(1_234),
    message: 'Hello',
    hops: 1,
    deadline: 0,
    ...request,
  }
  const result = await createRunner(echoRunner, {}).run(full, { signal: new AbortController().signal, log() {} })
  if (result.status !== 'ok') throw new Error(`the echo runner ended ${result.status}`)
  expect(result.simulated).toBe(true)
  return result.text
}

describe('the echo runner', () => {
  test('the echo says that no model is configured, and how many characters would have been sent to which agent', async () => {
    const text = await runEcho({ thinking: 'low' })
    expect(text).toContain('No model is configured')
    expect(text).toContain('1234 characters to agent ops (session hook:a, thinking low)')
  })

  test('the echo shows the first lines of the message, not of the prompt', async () => {
    const text = await runEcho({ message: 'One\r\n\nTwo', prompt: 'PROMPT' })
    expect(text).toMatch(/\n> One\n> Two$/)
    expect(text).not.toContain('PROMPT')
  })

  test('the echo of a heartbeat, which has no message, shows only its size', async () => {
    expect(await runEcho({ action: undefined, message: '' })).toMatch(
      /This heartbeat, the turn in which the agent hears what happened, would have sent 1234 .*\)\.$/,
    )
  })

  test('the echo of a long message shows only its beginning', async () => {
    const text = await runEcho({ message: `${'w'.repeat(5_000)}\n`.repeat(1_000) })
    expect(text.length).toBeLessThan(1_500)
    expect(text).toMatch(/> …$/)
  })
})

async function print(text: string, name = 'CI'): Promise<string> {
  let written = ''
  const channel = openChannel(
    consoleChannel,
    { timeoutMs: 1_000, onUnknown: 'stop' },
    { write: (reply) => void (written += reply.text) },
  )
  const run = { id: 'r', agentId: 'main', name, hops: 1 }
  const signal = new AbortController().signal
  const result = await channel.send({ to: undefined, text, format: 'markdown', nonce: 'n1', signal, run })
  expect(result).toEqual({ kind: 'sent', id: 'n1' })
  return written
}

describe('the console channel', () => {
  test('a reply is printed below a line with its agent and its run', async () => {
    expect(await print('Line 1\nLine 2\tand é 😀')).toBe('── reply of main (CI) ──\nLine 1\nLine 2\tand é 😀\n')
  })

  test.each([
    ['a colour', '\u001b[31mred'],
    ['a window title', '\u001b]0;title\u0007'],
    ['a clipboard write', '\u001b]52;c;ZXZpbA==\u001b\\'],
    ['an eight-bit sequence', '\u009b2J'],
    ['a carriage return over the line', 'harmless\rharmful'],
    ['backspaces', 'abc\b\b\b'],
    ['delete', 'x\u007f'],
    ['text that turns its direction', '\u202egnp.exe'],
    ['a line separator', 'a\u2028b'],
  ])('the text of a reply with %s reaches the terminal without control characters', async (_, text) => {
    // oxlint-disable-next-line no-control-regex
    const driving = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/
    expect(text).toMatch(driving)
    expect(await print(text)).not.toMatch(driving)
    expect(await print('x', text)).not.toMatch(driving)
  })

  test('Windows line breaks are printed as line breaks', async () => {
    expect(await print('a\r\nb')).toContain('\na\nb\n')
  })

  test('the name of a run cannot add a line to the console', async () => {
    expect((await print('x', 'CI\n── reply of boss')).split('\n')).toHaveLength(3)
  })
})
