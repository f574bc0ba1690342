// Ten tasks for an agent that writes hooks, in one config directory. Each has the words of its operator and a check of what then happens.
import { expect } from 'vitest'

/** What a task does with the gateway: as its senders, and as its operator. */
export type Stage = {
  /** Posts JSON with the hook token, or with these headers alone. */
  send(hook: string, payload: object, headers?: Readonly<Record<string, string>>): Promise<Sent>
  /** The newest state of a delivery, and its first message. */
  read(deliveryId: string): Promise<{ state: string; message: string | undefined; run: string | undefined }>
}
type Sent = { readonly status: number; readonly deliveryId: string }

type Task = {
  readonly name: string
  /** Part of the configuration: a mapping, if the task begins with one. */
  readonly mapping?: object
  /** Files by their path in the config directory. */
  readonly files?: Readonly<Record<string, string>>
  /** The words of the operator. */
  readonly prompt: string
  /** What came in before the agent begins. The ids are those that the check gets. */
  readonly before?: (stage: Stage) => Promise<readonly string[]>
  /** Called until it passes. */
  readonly check: (stage: Stage, ids: readonly string[]) => Promise<void>
}

const mapping = (id: string, rest: object) => ({ id, match: { path: id }, deliver: false, ...rest })
const sendAll = async (stage: Stage, hook: string, payloads: readonly object[]) => {
  const ids: string[] = []
  for (const payload of payloads) ids.push((await stage.send(hook, payload)).deliveryId)
  return ids
}
/** The message that a new request becomes. */
const expectMessage = async (stage: Stage, hook: string, payload: object, message: string) => {
  const { deliveryId } = await stage.send(hook, payload)
  expect((await stage.read(deliveryId)).message).toBe(message)
}

export const gitlabSecret = 'agreed-with-the-sender-0123456789'

export const tasks: readonly Task[] = [
  {
    name: 'an unknown sender with its document',
    prompt:
      'Weaver will send its deployments to /hooks/weaver, with the hook token. Its document shows {"service": "web", "version": "v12", "by": {"name": "Ada"}}. The message must be "web v12 by Ada".',
    check: (stage) =>
      expectMessage(stage, 'weaver', { service: 'api', version: 'v3', by: { name: 'Bo' } }, 'api v3 by Bo'),
  },
  {
    name: 'a drift',
    mapping: mapping('shop', { messageTemplate: 'sold for {{order.total}}' }),
    prompt:
      'The messages of /hooks/shop have lost their amount, because the sender renamed a field. Make them read "sold for <amount>" again.',
    before: (stage) =>
      sendAll(stage, 'shop', [{ order: { total: 3 } }, { order: { amount: 4 } }, { order: { amount: 5 } }]),
    check: (stage) => expectMessage(stage, 'shop', { order: { amount: 9 } }, 'sold for 9'),
  },
  {
    name: 'a dead delivery',
    mapping: mapping('report', { agentId: 'reporter', messageTemplate: 'report {{n}}' }),
    prompt:
      'A run of /hooks/report is dead. The program of its runner is "cat". Correct it, and run the delivery again.',
    before: (stage) => sendAll(stage, 'report', [{ n: 1 }]),
    check: async (stage, [id = '']) => expect((await stage.read(id)).run).toBe('done'),
  },
  {
    name: 'a parked delivery with a TypeError',
    mapping: mapping('signup', { transform: { module: 'signup.ts' } }),
    files: {
      'hooks/transforms/signup.ts':
        "export default ({ payload }) => ({ message: 'welcome ' + payload.user.name.toUpperCase() })\n",
    },
    prompt: 'A request of /hooks/signup is parked. Without a user, the message must be "welcome SOMEBODY".',
    before: (stage) => sendAll(stage, 'signup', [{ user: { name: 'Ada' } }, { user: null }]),
    check: async (stage, [, id = '']) =>
      expect(await stage.read(id)).toMatchObject({ state: 'accepted', message: 'welcome SOMEBODY' }),
  },
  {
    name: 'a missing signature proof',
    mapping: mapping('code', { messageTemplate: 'pushed {{ref}}' }),
    prompt:
      'GitLab posts to /hooks/code and is refused. It proves itself with its secret token, which is GITLAB_SECRET in .env. Accept GitLab, and nobody else.',
    check: async (stage) => {
      const proved = await stage.send('code', { ref: 'main' }, { 'x-gitlab-token': gitlabSecret })
      expect([proved.status, (await stage.send('code', { ref: 'main' })).status]).toEqual([200, 401])
    },
  },
  {
    name: 'a mapping that matches too much',
    mapping: mapping('alerts', { messageTemplate: 'alert {{title}}' }),
    prompt: '/hooks/alerts must take only the alerts whose severity is "critical".',
    before: (stage) =>
      sendAll(stage, 'alerts', [
        { severity: 'info', title: 'a' },
        { severity: 'critical', title: 'b' },
      ]),
    check: async (stage) => {
      await expectMessage(stage, 'alerts', { severity: 'critical', title: 'c' }, 'alert c')
      const { status, deliveryId } = await stage.send('alerts', { severity: 'info', title: 'd' })
      expect(status === 200 ? (await stage.read(deliveryId)).state : 'refused').not.toBe('accepted')
    },
  },
  {
    name: 'an event that is sent twice',
    mapping: mapping('billing', { transform: { module: 'billing.ts' } }),
    files: {
      'hooks/transforms/billing.ts': 'export default ({ payload }) => ({ message: `paid ${payload.invoice}` })\n',
    },
    prompt:
      'The sender of /hooks/billing repeats events, with the same "eventId" in other requests. Each must make one action.',
    before: (stage) =>
      sendAll(stage, 'billing', [
        { eventId: 'e1', invoice: 7 },
        { eventId: 'e1', invoice: 7, attempt: 2 },
      ]),
    check: async (stage) => {
      const eventId = `e${Math.random()}`
      const [first = '', second = ''] = await sendAll(stage, 'billing', [
        { eventId, invoice: 8 },
        { eventId, invoice: 8, attempt: 2 },
      ])
      expect((await stage.read(first)).state).toBe('accepted')
      expect(second === first ? 'same' : (await stage.read(second)).state).not.toBe('accepted')
    },
  },
  {
    name: 'a template with a misspelt path',
    mapping: mapping('pulls', { messageTemplate: 'review {{pull_request.titel}}' }),
    prompt: 'The messages of /hooks/pulls have no title.',
    before: (stage) =>
      sendAll(stage, 'pulls', [{ pull_request: { title: 'one' } }, { pull_request: { title: 'two' } }]),
    check: (stage) => expectMessage(stage, 'pulls', { pull_request: { title: 'three' } }, 'review three'),
  },
  {
    name: 'a transform from a recorded request, with its fixture',
    mapping: mapping('forms', { messageTemplate: '{{payload}}' }),
    prompt:
      'Requests of /hooks/forms have a list of answers. Replace the template by a transform, tested with the recorded request: the message is the values, with ", " between them.',
    before: (stage) => sendAll(stage, 'forms', [{ answers: [{ value: 'red' }, { value: 'blue' }] }]),
    check: (stage) =>
      expectMessage(stage, 'forms', { answers: [{ value: 'x' }, { value: 'y' }, { value: 'z' }] }, 'x, y, z'),
  },
  {
    name: 'a save that was held back',
    mapping: mapping('greet', { messageTemplate: 'Hello {{name}}' }),
    prompt:
      'The messages of /hooks/greet must begin with "Welcome" in place of "Hello". If the gateway holds the save back, and only these requests differ, publish it.',
    before: (stage) => sendAll(stage, 'greet', [{ name: 'Ada' }]),
    check: (stage) => expectMessage(stage, 'greet', { name: 'Bo' }, 'Welcome Bo'),
  },
]
