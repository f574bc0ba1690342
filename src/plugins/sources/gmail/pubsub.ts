// The calls to Pub/Sub, and its names for a watched mailbox. Shapes: cloud.google.com/pubsub/docs/reference/rest
import { z } from 'zod'
import { cut, Problem, toPrintableLine, tryParseJson, type WatchedGmail } from '../shared/kit.ts'
import { parseAnswer } from './api.ts'
import type { GoogleCall } from './call.ts'

/** Gmail's service account, which needs access to the topic. */
const publisher = { role: 'roles/pubsub.publisher', member: 'serviceAccount:gmail-api-push@system.gserviceaccount.com' }

const Policy = z.looseObject({
  etag: z.string().optional(),
  bindings: z.array(z.looseObject({ role: z.string(), members: z.array(z.string()).default([]) })).default([]),
})
const Subscription = z.looseObject({
  topic: z.string(),
  pushConfig: z
    .looseObject({
      pushEndpoint: z.string().optional(),
      oidcToken: z
        .looseObject({ serviceAccountEmail: z.string().optional(), audience: z.string().optional() })
        .optional(),
    })
    .optional(),
})
const PullAnswer = z.object({
  receivedMessages: z
    .array(z.object({ ackId: z.string(), message: z.object({ data: z.string().default('') }).default({ data: '' }) }))
    .default([]),
})

/** The target of a push, and the account that signs it. */
type PushConfig = {
  readonly pushEndpoint: string
  readonly oidcToken: { serviceAccountEmail: string; audience: string }
}
type ReceivedMessage = { readonly ackId: string; readonly data: string }

/** The result of a step of the setup. */
export type SetupState = 'ok' | 'changed'

export type PubSubApi = {
  ensureTopic(topic: string): Promise<SetupState>
  /** Allows Gmail to publish. */
  ensurePublisher(topic: string): Promise<SetupState>
  /** Creates or changes the subscription. If `push` is undefined, the subscription is pulled. Throws if it belongs to another topic. */
  ensureSubscription(subscription: string, topic: string, push: PushConfig | undefined): Promise<SetupState>
  /** Why no notification comes from the subscription; undefined if it exists and belongs to the topic. */
  findSubscriptionProblem(subscription: string, topic: string): Promise<string | undefined>
  /** Waits at Google for a message, up to about 90 s. */
  pull(subscription: string): Promise<ReceivedMessage[]>
  acknowledge(subscription: string, ackIds: readonly string[]): Promise<void>
}

/** All names are complete: `projects/<project>/topics/<topic>`. */
export function createPubSubApi({ call, base }: { call: GoogleCall; base: string }): PubSubApi {
  const toUrl = (name: string) => `${base}/v1/${name}`

  /** The subscription; undefined if it does not exist. */
  async function findSubscription(name: string) {
    const answer = await call({ method: 'GET', url: toUrl(name), allow: [404] })
    return answer.status === 404 ? undefined : parseAnswer(Subscription, answer, 'subscriptions.get')
  }

  return {
    async ensureTopic(topic) {
      const found = await call({ method: 'GET', url: toUrl(topic), allow: [404] })
      if (found.status !== 404) return 'ok'
      // 409: another program created it first
      const made = await call({ method: 'PUT', url: toUrl(topic), body: {}, allow: [409] })
      return made.status === 409 ? 'ok' : 'changed'
    },
    async ensurePublisher(topic) {
      const policy = parseAnswer(
        Policy,
        await call({ method: 'GET', url: toUrl(`${topic}:getIamPolicy`) }),
        'getIamPolicy',
      )
      const { role, member } = publisher
      if (policy.bindings.some((binding) => binding.role === role && binding.members.includes(member))) return 'ok'
      const bindings = [...policy.bindings, { role, members: [member] }]
      // with the etag that was read, so that a concurrent change is not undone
      await call({ method: 'POST', url: toUrl(`${topic}:setIamPolicy`), body: { policy: { ...policy, bindings } } })
      return 'changed'
    },
    async ensureSubscription(subscription, topic, push) {
      const found = await findSubscription(subscription)
      if (found === undefined) {
        const body = {
          topic,
          ackDeadlineSeconds: 60,
          retryPolicy: { minimumBackoff: '10s', maximumBackoff: '600s' },
          // the subscription never expires, however long the gateway is stopped
          expirationPolicy: {},
          ...(push === undefined ? {} : { pushConfig: push }),
        }
        await call({ method: 'PUT', url: toUrl(subscription), body })
        return 'changed'
      }
      // the topic of a subscription cannot be changed
      if (found.topic !== topic) {
        throw new Problem('gmail-unavailable', describeOtherTopic(subscription, { topic, found: found.topic }))
      }
      if (isSamePush(found.pushConfig, push)) return 'ok'
      await call({ method: 'POST', url: toUrl(`${subscription}:modifyPushConfig`), body: { pushConfig: push ?? {} } })
      return 'changed'
    },
    async findSubscriptionProblem(subscription, topic) {
      const found = await findSubscription(subscription)
      if (found === undefined) return `${subscription} does not exist. Run "hookloom gmail setup".`
      return found.topic === topic ? undefined : describeOtherTopic(subscription, { topic, found: found.topic })
    },
    async pull(subscription) {
      const answer = await call({ method: 'POST', url: toUrl(`${subscription}:pull`), body: { maxMessages: 100 } })
      const { receivedMessages } = parseAnswer(PullAnswer, answer, 'subscriptions.pull')
      return receivedMessages.map(({ ackId, message: { data } }) => ({ ackId, data }))
    },
    async acknowledge(subscription, ackIds) {
      await call({ method: 'POST', url: toUrl(`${subscription}:acknowledge`), body: { ackIds } })
    },
  }
}

function describeOtherTopic(subscription: string, { topic, found }: { topic: string; found: string }): string {
  const other =
    found === '_deleted-topic_' ? 'a topic that was deleted' : `the topic ${cut(toPrintableLine(found), 120)}`
  return `${subscription} belongs to ${other}, not to ${topic}, so no notification of Gmail comes from it. Run "hookloom gmail setup --subscription <name>" with a new name.`
}

function isSamePush(found: z.infer<typeof Subscription>['pushConfig'], wanted: PushConfig | undefined): boolean {
  if (wanted === undefined) return found?.pushEndpoint === undefined || found.pushEndpoint === ''
  return (
    found?.pushEndpoint === wanted.pushEndpoint &&
    found.oidcToken?.serviceAccountEmail === wanted.oidcToken.serviceAccountEmail &&
    found.oidcToken.audience === wanted.oidcToken.audience
  )
}

const Notification = z.object({ emailAddress: z.string(), historyId: z.coerce.string() })

/** The mailbox that changed; undefined if the data is not a notification of Gmail. */
export function readNotifiedAccount(data: string): string | undefined {
  const notification = Notification.safeParse(tryParseJson(Buffer.from(data, 'base64').toString())).data
  return notification?.emailAddress.toLowerCase()
}

const Service = z.object({ state: z.string() })

/** Enables an API of the project. `service`: such as `gmail.googleapis.com`. */
export async function ensureService(
  { call, base }: { call: GoogleCall; base: string },
  { project, service }: { project: string; service: string },
): Promise<SetupState> {
  const url = `${base}/v1/projects/${project}/services/${service}`
  const { state } = parseAnswer(Service, await call({ method: 'GET', url }), 'services.get')
  if (state === 'ENABLED') return 'ok'
  await call({ method: 'POST', url: `${url}:enable`, body: {} })
  return 'changed'
}

export function toTopic({ project, topic }: WatchedGmail): string {
  return `projects/${project}/topics/${topic}`
}

export function toSubscription({ project, subscription }: WatchedGmail): string {
  return `projects/${project}/subscriptions/${subscription}`
}

/** The settings of a push; undefined if the subscription is pulled. */
export function toPushConfig({ mode, push }: WatchedGmail): PushConfig | undefined {
  if (mode !== 'push') return undefined
  const { endpoint = '', serviceAccount = '' } = push
  return {
    pushEndpoint: endpoint,
    oidcToken: { serviceAccountEmail: serviceAccount, audience: push.audience ?? endpoint },
  }
}
