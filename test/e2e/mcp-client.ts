// The client of the official SDK, connected to `hookloom mcp` over standard input and output.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { onFileEnd } from '../file-end.ts'
import { mainFile, toChildEnv } from './gateway.ts'

type Called = {
  readonly isError: boolean
  /** All that the agent reads. */
  readonly text: string
  /** The text between the markers; empty if there are no markers. */
  readonly data: string
}

export type McpClient = {
  readonly client: Client
  /** Lines of the server that are not messages. */
  readonly faults: Error[]
  call(name: string, args?: Record<string, unknown>): Promise<Called>
  /** `call`, and the data as JSON. Throws if the tool failed. */
  ask<Answer = unknown>(name: string, args?: Record<string, unknown>): Promise<Answer>
}

/** `server`: the command of a client's configuration; by default the built program on `dir`. */
export async function connectMcp({
  dir,
  args = [],
  server,
}: {
  dir: string
  args?: readonly string[]
  server?: { command: string; args: readonly string[]; env: Readonly<Record<string, string>> }
}): Promise<McpClient> {
  const {
    command,
    args: words,
    env,
  } = server ?? {
    command: process.execPath,
    args: [mainFile, 'mcp', ...args, '--config-dir', dir],
    env: {},
  }
  const client = new Client({ name: 'test', version: '1' })
  const faults: Error[] = []
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has no event targets
  client.onerror = (error) => faults.push(error)
  await client.connect(new StdioClientTransport({ command, args: [...words], env: toChildEnv(env) }))
  onFileEnd(() => client.close())
  const call = async (name: string, given: Record<string, unknown> = {}): Promise<Called> => {
    const result = await client.callTool({ name, arguments: given }, undefined, { timeout: 120_000 })
    const parts = Array.isArray(result.content) ? result.content : []
    const text = parts.map((part) => String(part.text)).join('\n')
    const [, , data = ''] =
      /<<<EXTERNAL_UNTRUSTED_CONTENT id="(\w+)">>>\nSource: [^\n]*\n---\n([^]*)\n<<<END_EXTERNAL_UNTRUSTED_CONTENT id="\1">>>/.exec(
        text,
      ) ?? []
    return { isError: result.isError === true, text, data }
  }
  return {
    client,
    faults,
    call,
    async ask<Answer>(name: string, given?: Record<string, unknown>) {
      const { isError, text, data } = await call(name, given)
      if (isError) throw new Error(`${name}: ${text}`)
      // as: a test that gets another answer fails when it reads a field
      return JSON.parse(data) as Answer
    },
  }
}
