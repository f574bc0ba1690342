// Paths of templates and conditions that no known request has.
import { expect, test } from 'vitest'
import type { JsonValue } from '../../../../src/base/json.ts'
import type { MappingInput } from '../../../../src/core/model/mapping.ts'
import { createShapeLearner } from '../../../../src/gateway/deliveries/shapes/learner.ts'
import { silentLog } from '../../../../src/base/log.ts'
import { createWarner, findPathWarnings } from '../../../../src/gateway/replay/path-warnings.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import { makeFolder } from '../../../e2e/gateway.ts'
import { toGeneration, toTestDelivery } from '../../core/mapping/decide.ts'

type Sent = { readonly payload: JsonValue; readonly event?: string; readonly times?: number }

async function createStage(sent: readonly Sent[]) {
  const store = createMemoryStore({ clock: Date.now })
  const hook = toGeneration([{ match: { path: 'pr' }, messageTemplate: 'x' }]).findHook('pr')
  const learner = createShapeLearner({ store, development: false, log: silentLog })
  for (const { payload, event, times = 1 } of sent) {
    for (let count = 0; count < times; count += 1) {
      learner.note(toTestDelivery('pr', payload, event === undefined ? {} : { event }), hook)
      await learner.flush()
    }
  }
  return { store, dir: makeFolder() }
}

async function warn(sent: readonly Sent[], mapping: MappingInput): Promise<string[]> {
  const generation = toGeneration([{ id: 'pr', ...mapping, match: { path: 'pr', ...mapping.match } }])
  return (await findPathWarnings({ ...(await createStage(sent)), generation })).map(({ text }) => text)
}

const payload = {
  pull_request: { title: 'x', labels: [{ name: 'bug' }], body: null, byUser: { 'no name': 1 } },
  list: [],
}

test('the warning about a path that no request has suggests a similar path', async () => {
  expect(
    await warn([{ payload, times: 3 }], { messageTemplate: '{{pull_request.titel}} {{payload.pull_request.title}}' }),
  ).toEqual([
    'messageTemplate reads "pull_request.titel", which is in 0 of 3 known requests. Did you mean "pull_request.title"?',
  ])
})

test('the paths in conditions, session keys, keys of flows, answers and forEach are checked', async () => {
  const mapping: MappingInput = {
    messageTemplate: 'x',
    match: { payload: { 'pull_request.lables[0].name': 'bug', 'pull_request.title': 'x' } },
    sessionKey: 'hook:{{pull_request.tilte}}',
    forEach: 'lits',
    response: { status: 200, contentType: 'text/plain', body: '{{pull_request.labels[0].nam}}' },
    flow: { onNew: 'queue', key: '{{pull_requst.title}}' },
  }
  const found = await warn([{ payload }], mapping)
  const field = (text: string) => text.split(' ')[0]
  expect(found.map(field).toSorted()).toEqual(['flow.key', 'forEach', 'match.payload', 'response.body', 'sessionKey'])
})

test('a warning names the path that works for a key with dots or brackets, for a list, and for a field with the name of a placeholder', async () => {
  const sent = {
    fields: { 'System.Title': 'x', 'System.State': 'open' },
    'data[email]': 'x',
    metadata: { labels: { 'app.kubernetes.io/name': 'x' } },
    labels: [{ name: 'bug' }],
    events: { kind: 'x' },
    event: 'x',
  }
  const mapping: MappingInput = {
    messageTemplate:
      '{{fields.System.Title}} {{data.email}} {{metadata.labels.app.kubernetes.io/name}} {{labels.name}} {{evnt}}',
    match: { payload: { 'labels.name': 'bug', 'fields.System.Stat': { not: 'x' }, 'data[0]': { exists: true } } },
  }
  const found = await warn([{ payload: sent }], mapping)
  expect(found.map((text) => / reads "(.*?)".*Did you mean "(.*)"/.exec(text)?.slice(1))).toEqual([
    ['fields.System.Title', "fields['System.Title']"],
    ['data.email', "['data[email]']"],
    ['metadata.labels.app.kubernetes.io/name', "metadata.labels['app.kubernetes.io/name']"],
    ['labels.name', 'labels[0].name'],
    ['evnt', 'payload.event'],
    ['labels.name', 'labels[*].name'],
  ])
})

test('a path below a map, an empty list or null causes no warning', async () => {
  const messageTemplate =
    '{{pull_request.byUser.titel}} {{list[0].titel}} {{pull_request.body.titel}} {{body}} {{event}} {{headers.titel}}'
  expect(await warn([{ payload, times: 30 }], { messageTemplate })).toEqual([])
})

test('a warning about a path without a similar one needs 20 requests', async () => {
  const mapping = { messageTemplate: '{{pull_request.milestone.due}}' }
  expect(await warn([{ payload, times: 19 }], mapping)).toEqual([])
  expect(await warn([{ payload, times: 20 }], mapping)).toEqual([
    'messageTemplate reads "pull_request.milestone.due", which is in 0 of 20 known requests.',
  ])
})

test('a warning about a path counts only the events that the mapping takes', async () => {
  const sent = [
    { payload, event: 'pull_request' },
    { payload: { titel: 1 }, event: 'push' },
  ]
  const mapping = (event: string): MappingInput => ({ messageTemplate: '{{titel}}', match: { event } })
  expect(await warn(sent, mapping('push'))).toEqual([])
  expect(await warn(sent, { messageTemplate: '{{titel}}' })).toEqual([])
  expect(
    await warn([{ payload: { title: 1 }, event: 'pull_request' }, ...sent.slice(1)], mapping('pull_request')),
  ).toHaveLength(1)
})

test('a reload logs each warning about a path once, and again if the path was fixed and then broken again', async () => {
  const lines: string[] = []
  const log = { ...silentLog, warn: (_: object, text: string) => void lines.push(text) }
  const { store, dir } = await createStage([{ payload }])
  const reloaded = createWarner({ store, dir, log })
  const [wrong, right] = ['titel', 'title'].map((field) =>
    toGeneration([{ id: 'pr', match: { path: 'pr' }, messageTemplate: `{{pull_request.${field}}}` }]),
  )
  for (const generation of [wrong, wrong, right, wrong]) {
    if (generation !== undefined) await reloaded(generation)
  }
  expect(lines).toHaveLength(2)
  expect(lines[0]).toContain('mapping "pr": messageTemplate reads "pull_request.titel"')
  await reloaded(toGeneration([{ id: 'pr', match: { path: 'pr' }, messageTemplate: 'x', status: 'review' }]))
  expect(lines[2]).toContain('mapping "pr": status is never set')
  const mappings = [
    { id: 'all', messageTemplate: 'x' },
    { id: 'never', match: { path: 'pr' }, messageTemplate: 'x' },
  ]
  await reloaded(toGeneration(mappings, { hooks: { mappings } }))
  expect(lines[3]).toBe(
    'hooks.mappings[1] is never reached: hooks.mappings[0] takes every request that it matches. Move it before that one.',
  )
})

test('a forEach that finds no list is warned of, with the list that the requests have', async () => {
  const warnOf = async (sent: JsonValue, forEach: string) =>
    warn([{ payload: sent }], { messageTemplate: 'x', forEach })
  const begin = (path: string) => `forEach reads "${path}", which is a list in 0 of 1 known requests.`
  expect(await warnOf([{ event: 'open' }], 'events')).toEqual([`${begin('events')} Did you mean "payload"?`])
  expect(await warnOf({ data: { events: [1] } }, 'payload')).toEqual([
    `${begin('payload')} Did you mean "data.events"?`,
  ])
  expect(await warnOf({ 'a.b': { items: [1] } }, 'items')).toEqual([`${begin('items')} Did you mean "['a.b'].items"?`])
  expect(await warnOf([1], 'payload')).toEqual([])
  expect(await warnOf({ events: [] }, 'events')).toEqual([])
  expect(await warnOf({ payload: { items: [1] } }, 'payload.items')).toEqual([])
})

test('a condition that compares a list is warned of, with the path of its items', async () => {
  const labels = { labels: ['bug'], names: [{ name: 'x' }], either: 'x' }
  const sent = [{ payload: labels }, { payload: { ...labels, either: ['x'] } }]
  const conditions = { labels: { matches: 'bug' }, names: { exists: true }, either: 'x', 'labels[*]': 'bug' }
  expect(await warn(sent, { messageTemplate: 'x', match: { payload: conditions } })).toEqual([
    'match.payload reads "labels", which is a value, and not a list, in 0 of 2 known requests. Did you mean "labels[*]"?',
  ])
})

test('the paths of a push of GitHub are compared with its sample', async () => {
  const mapping: MappingInput = { match: { path: 'code' }, verify: { scheme: 'github', secret: 'one-two-three' } }
  const warnOf = async (messageTemplate: string, event?: string) => {
    const match = { path: 'code', ...(event !== undefined && { event }) }
    const generation = toGeneration([{ id: 'code', ...mapping, match, messageTemplate }])
    return (await findPathWarnings({ ...(await createStage([])), generation })).map(({ text }) => text)
  }
  expect(await warnOf('{{ref}} {{head_commit.message}} {{commits[0].author.name}} {{pusher.name}}')).toEqual([])
  expect(await warnOf('{{ref}} {{head_commit.mesage}}', 'push')).toEqual([
    'messageTemplate reads "head_commit.mesage", which is in 0 of 1 known requests. Did you mean "head_commit.message"?',
  ])
})
