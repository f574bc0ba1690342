// MCP Events: subscribes a hook to events of an MCP server, which then posts them there.
import { defineSource } from '../../../define.ts'
import { McpEventsConfig } from './options.ts'
import { probeServer } from './server.ts'
import { keepSubscriptions } from './subscriptions.ts'

export const mcpEventsSource = defineSource({
  name: 'mcp-events',
  about: 'Events of an MCP server, which posts them to the hook.',
  docs: 'https://modelcontextprotocol.io/extensions/events/overview',
  options: McpEventsConfig,
  account: ({ url }) => url,
  create(config, host) {
    let problems: readonly string[] = []
    return {
      everyMs: 1_000,
      // a pass stays until the source is stopped, so that a failure of one subscription delays no other
      pass: (signal) => keepSubscriptions({ config, host, signal, onProblems: (next) => (problems = next) }),
      problems: () => problems,
      probe: (signal) => probeServer(config, { fetch: host.fetch, signal }),
    }
  },
})
