// MCP Events: a turn becomes an event of an MCP server, to which clients such as ChatGPT subscribe.
import { hash } from 'node:crypto'
import { defineRunner, type RunnerHost } from '../../../define.ts'
import { permanentFailure, Problem } from '../shared/kit.ts'
import { createDelivery, listProblems } from './delivery.ts'
import { createEventLog } from './event-log.ts'
import { exceedsPost } from './occurrence.ts'
import { EventServerConfig } from './options.ts'
import { createPrincipals } from './principals.ts'
import { createEventServer } from './server.ts'
import { createSubscriptions } from './subscriptions.ts'

/** The events of a section are the agents whose turns it performs. An event is stored before its run is recorded, under the id of the run. */
export const mcpEventsRunner = defineRunner({
  name: 'mcp-events',
  about: 'An MCP server whose clients receive the turns as events. Their replies stay there.',
  docs: 'https://modelcontextprotocol.io/extensions/events/overview',
  options: EventServerConfig,
  create(config, host) {
    const { id, agents, state, clock } = host
    requireAgents(config, host)
    const events = createEventLog(state, clock)
    const subscriptions = createSubscriptions(state)
    const principals = createPrincipals(config, agents)
    const shared = { ...host, config, events, subscriptions, principals }
    const delivery = createDelivery(shared)
    return {
      usesWorkspace: false,
      async run({ runId, agentId, sessionKey, prompt, hops }, { signal }) {
        // the configuration of defaults runs agents that it does not list: nobody could subscribe to their events
        if (!agents.includes(agentId))
          return permanentFailure(`The agent "${agentId}" is no event of runners.${id}: list it in agents.list.`)
        // a session key may have text from outside, which must not leave its boundary
        const session = hash('sha256', `${agentId} ${sessionKey}`).slice(0, 32)
        const event = { id: runId, name: agentId, at: clock(), hops, data: { runId, session, prompt } }
        if (exceedsPost(event))
          return { status: 'too-long', detail: 'The event is over 256 KiB, which no client takes.' }
        signal.throwIfAborted()
        await events.append(event)
        return { status: 'forwarded', id: runId, detail: `Stored as an event for the subscribers of runners.${id}.` }
      },
      serve: createEventServer({ ...shared, onChanged: delivery.look }),
      passes: delivery.passes,
      async probe() {
        const all = await subscriptions.list()
        const problems = listProblems(all)
        const names = Object.keys(config.subscribers).map((name) => `${name} ${countOf(all.values(), name)}`)
        const counted = names.length === 0 ? 'no subscriber' : `subscriptions: ${names.join(', ')}`
        return { ok: problems.length === 0, detail: [`${agents.length} events, ${counted}.`, ...problems].join(' ') }
      },
    }
  },
})

function countOf(all: Iterable<{ readonly subscriber: string }>, name: string): number {
  return [...all].filter(({ subscriber }) => subscriber === name).length
}

/** Throws `config-invalid` for an event that no agent has. */
function requireAgents(
  { subscribers, events }: EventServerConfig,
  { id, agents }: Pick<RunnerHost, 'id' | 'agents'>,
): void {
  const named = [
    ...Object.keys(events).map((name) => ({ name, at: 'events' })),
    ...Object.entries(subscribers).flatMap(([subscriber, { events: own = [] }]) =>
      own.map((name) => ({ name, at: `subscribers.${subscriber}.events` })),
    ),
  ]
  const unknown = named.find(({ name }) => !agents.includes(name))
  if (unknown === undefined) return
  const { name, at } = unknown
  throw new Problem('config-invalid', `runners.${id}.${at} has "${name}", which is no agent with this runner.`)
}
