// The built-in sources.
import type { SourceDefinition } from '../../define.ts'
import { gmailSource } from './gmail/gmail.ts'
import { imapSource } from './imap/imap.ts'
import { mcpEventsSource } from './mcp-events/mcp-events.ts'
import { relaySource } from './relay/relay.ts'

/** Each has one section, `hooks.<name>`. */
export const sources: readonly SourceDefinition[] = [gmailSource, imapSource]
/** Those that have their section. */
export const listWithSection = (hooks: object) =>
  sources
    .map((definition) => ({ definition, options: Reflect.get(hooks, definition.name) as unknown }))
    .filter(({ options }) => options !== undefined)
/** Each is the `kind` of any number of sections of `sources`, as a source of a plugin. */
export const sourceKinds: readonly SourceDefinition[] = [mcpEventsSource, relaySource]
