// A gateway that is subscribed to the events of an MCP server, and the events that it has.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { type McpServer, mcpToken } from './fakes/mcp-events.ts'
import { freePort, readSessionIds } from './gateway.ts'

/** As `hookloom add preset` makes it. */
export const mcpSecret = '5f'.repeat(32)

/** `port`: of the hooks, because the callback has it. */
export async function toMcpConfig({ url }: Pick<McpServer, 'url'>, more: object = {}) {
  const port = await freePort()
  const section = {
    kind: 'mcp-events',
    url,
    token: mcpToken,
    callback: `http://127.0.0.1:${port}/hooks/mcp-events`,
    secret: mcpSecret,
    events: [{ name: 'incident.created', arguments: { severity: 'P1' } }],
    ...more,
  }
  return {
    server: { port },
    agents: { defaults: { heartbeat: { every: 0 } } },
    sources: { 'mcp-events': section },
    hooks: { presets: [{ name: 'mcp-events', secret: mcpSecret }] },
  }
}

/** The ids of the events that became runs, one for each run, the oldest first. */
export const readRuns = (gateway: { readonly adminUrl: string }) => readSessionIds(gateway, 'hook:mcp-events:')

/** Changes the section in the saved configuration. */
export function editSection(dir: string, change: object): void {
  const file = join(dir, 'hookloom.jsonc')
  const config = z
    .looseObject({ sources: z.object({ 'mcp-events': z.looseObject({}) }) })
    .parse(JSON.parse(readFileSync(file, 'utf8')))
  Object.assign(config.sources['mcp-events'], change)
  writeFileSync(file, JSON.stringify(config))
}
