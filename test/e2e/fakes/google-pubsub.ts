// A fake of Pub/Sub's REST API: topics with a policy, subscriptions for pulls, the state of a project's APIs.
import type { Reply } from './google.ts'
import type { Received } from './loopback.ts'

type Pulled = { ackId: string; data: string }

export type FakePubSub = {
  readonly topics: Map<string, { policy: { etag: string; bindings: { role: string; members: string[] }[] } }>
  readonly subscriptions: Map<string, object>
  /** APIs that are turned on. */
  readonly services: Set<string>
  /** Adds a message, which stays in the subscription until it is acknowledged. */
  publish(notification: object): void
  /** The number of messages that are not acknowledged. */
  readonly waiting: () => number
  /** Resolves when a pull waits for messages. */
  waitForPull(): Promise<void>
  answer(seen: Received): Reply | Promise<Reply> | undefined
}

export function createFakePubSub({ addFault }: { addFault: (text: string) => void }): FakePubSub {
  const messages: Pulled[] = []
  let wakes: (() => void)[] = []
  let watchers: (() => void)[] = []
  let acks = 0

  const fake: FakePubSub = {
    topics: new Map(),
    subscriptions: new Map(),
    services: new Set(),
    publish(notification) {
      acks += 1
      messages.push({ ackId: `ack-${acks}`, data: Buffer.from(JSON.stringify(notification)).toString('base64') })
      for (const wake of wakes.splice(0)) wake()
    },
    waiting: () => messages.length,
    waitForPull: () => new Promise((resolve) => (wakes.length > 0 ? resolve() : watchers.push(resolve))),
    answer(seen) {
      const { method, path } = seen
      const [, name = '', verb] = /^\/v1\/([^:]+)(?::(\w+))?$/.exec(path) ?? []
      if (/^projects\/[\w-]+\/services\/[\w.]+$/.test(name)) return answerService(name, verb)
      if (/^projects\/[\w-]+\/topics\/[\w-]+$/.test(name)) return answerTopic(method, name, verb, seen.body)
      if (/^projects\/[\w-]+\/subscriptions\/[\w-]+$/.test(name))
        return answerSubscription(method, name, verb, seen.body)
      return undefined
    },
  }
  return fake

  function answerService(name: string, verb: string | undefined): Reply {
    const service = name.split('/').at(-1) ?? ''
    if (verb === 'enable') fake.services.add(service)
    return { body: { name, state: fake.services.has(service) ? 'ENABLED' : 'DISABLED' } }
  }

  function answerTopic(method: string, name: string, verb: string | undefined, body: unknown): Reply {
    const topic = fake.topics.get(name)
    if (method === 'PUT') {
      if (topic !== undefined) return { status: 409, body: { error: { code: 409, status: 'ALREADY_EXISTS' } } }
      fake.topics.set(name, { policy: { etag: 'one', bindings: [] } })
      return { body: { name } }
    }
    if (topic === undefined) return { status: 404, body: { error: { code: 404, status: 'NOT_FOUND' } } }
    if (verb === 'setIamPolicy') {
      const { policy } = body as { policy: typeof topic.policy }
      if (policy.etag !== topic.policy.etag) addFault('setIamPolicy comes without the etag that was read')
      topic.policy = { ...policy, etag: `${policy.etag}+` }
    }
    return { body: verb === undefined ? { name } : topic.policy }
  }

  function answerSubscription(
    method: string,
    name: string,
    verb: string | undefined,
    body: unknown,
  ): Reply | Promise<Reply> {
    if (method === 'PUT') {
      const { topic } = body as { topic: string }
      if (!fake.topics.has(topic)) addFault('a subscription of a topic that is not there')
      fake.subscriptions.set(name, body as object)
      return { body: { name, ...(body as object) } }
    }
    const subscription = fake.subscriptions.get(name)
    if (subscription === undefined) return { status: 404, body: { error: { code: 404, status: 'NOT_FOUND' } } }
    if (verb === 'modifyPushConfig') fake.subscriptions.set(name, { ...subscription, ...(body as object) })
    if (verb === 'acknowledge') {
      const { ackIds } = body as { ackIds: string[] }
      for (const id of ackIds) {
        const at = messages.findIndex(({ ackId }) => ackId === id)
        if (at < 0) addFault(`an unknown ackId ${id}`)
        else messages.splice(at, 1)
      }
    }
    if (verb === 'pull') return pull(body)
    return { body: verb === undefined ? { name, ...subscription } : {} }
  }

  /** Waits until there is a message, as Google does. */
  async function pull(body: unknown): Promise<Reply> {
    if (typeof (body as { maxMessages?: unknown }).maxMessages !== 'number') addFault('pull has no maxMessages')
    if (messages.length === 0) {
      const woken = new Promise<void>((resolve) => wakes.push(resolve))
      for (const watcher of watchers.splice(0)) watcher()
      await woken
    }
    const receivedMessages = messages.map(({ ackId, data }) => ({ ackId, message: { data, messageId: ackId } }))
    return { body: { receivedMessages } }
  }
}
