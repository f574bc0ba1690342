import { expect, test } from 'vitest'
import { findNearest } from '../../../../src/base/text.ts'
import { z } from 'zod'
import { type KnownPayloads, listKeysAt, renderConfigSchema } from '../../../../src/gateway/config/schema.ts'

type Node = { path: string; schema: Record<string, unknown> }

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Every schema of a key, with its path. */
function listNodes(schema: unknown, path: string): Node[] {
  if (!isRecord(schema)) return []
  const { properties, items, anyOf } = schema
  return [
    { path, schema },
    ...Object.entries(isRecord(properties) ? properties : {}).flatMap(([key, child]) =>
      listNodes(child, `${path}.${key}`),
    ),
    ...listNodes(items, `${path}[]`),
    ...(Array.isArray(anyOf) ? anyOf : []).flatMap((child: unknown) => listNodes(child, path)),
  ]
}

test('the JSON Schema describes every key, and refuses unknown keys everywhere but in the options of a preset', () => {
  const nodes = listNodes(JSON.parse(renderConfigSchema()), '')
  expect(nodes.length).toBeGreaterThan(60)
  const keys = nodes.filter(({ path }) => path !== '' && !path.endsWith('[]'))
  expect(
    keys
      .filter(
        ({ path, schema }) =>
          schema.description === undefined &&
          !nodes.some((other) => other.path === path && other.schema.description !== undefined),
      )
      .map(({ path }) => path),
  ).toEqual([])
  const open = nodes.filter(({ schema }) => isRecord(schema.properties) && schema.additionalProperties !== false)
  expect(open.map(({ path }) => path)).toEqual(['.hooks.presets[]'])
})

test('the JSON Schema is draft-7, requires no section, and shows no integer limit of JavaScript', () => {
  const schema = JSON.parse(renderConfigSchema())
  expect(schema.$schema).toBe('http://json-schema.org/draft-07/schema#')
  expect(schema.required).toBeUndefined()
  expect(JSON.stringify(schema)).not.toContain(String(Number.MAX_SAFE_INTEGER))
})

const known: KnownPayloads = {
  paths: [
    { path: 'issue.state', placeholder: 'issue.state', kinds: ['string'] },
    { path: 'event', placeholder: 'payload.event', kinds: ['null', 'string'] },
  ],
  lists: ['commits'],
  sources: ['github'],
  events: ['push'],
}

test('the JSON Schema suggests known fields of payloads, and they make nothing valid or invalid', () => {
  const schema = JSON.parse(renderConfigSchema(known))
  const { match, forEach, messageTemplate } = schema.properties.hooks.properties.mappings.items.properties
  expect(Object.keys(match.properties.payload.properties)).toEqual(['issue.state', 'event'])
  expect(match.properties.payload.properties.event.description).toBe('null or string, as requests have it.')
  expect(match.properties.any.items.properties.payload.properties).toEqual(match.properties.payload.properties)
  expect(match.properties.event.examples).toEqual(['push'])
  expect(match.properties.source.examples).toEqual(['github'])
  expect(forEach.examples).toEqual(['commits'])
  expect(messageTemplate.examples).toEqual(['{{issue.state}}', '{{payload.event}}'])

  const checks = [z.fromJSONSchema(JSON.parse(renderConfigSchema())), z.fromJSONSchema(schema)]
  const verdicts = (payload: object) =>
    checks.map((check) => {
      const mappings = [{ match: { path: 'a', event: 'other', source: 'other', payload }, messageTemplate: 'x' }]
      return check.safeParse({ hooks: { mappings } }).success
    })
  for (const name of ['issue.state', 'issue.other']) {
    expect(verdicts({ [name]: 'open' })).toEqual([true, true])
    expect(verdicts({ [name]: { gt: 3 } })).toEqual([true, true])
    expect(verdicts({ [name]: { greater: 3 } })).toEqual([false, false])
  }
})

test('listKeysAt finds keys through arrays and alternatives, and no keys where any key is valid', () => {
  expect(listKeysAt(['hooks', 'mappings', 3, 'transform'])).toEqual(['module', 'export', 'shadow'])
  expect(listKeysAt(['hooks', 'presets', 0])).toEqual(['name'])
  expect(listKeysAt(['models', 'aliases'])).toEqual([])
  expect(listKeysAt(['constructor'])).toEqual([])
})

test('findNearest returns the most similar word, and none if no word is similar', () => {
  const known = ['messageTemplate', 'textTemplate', 'name', 'to', 'token', 'path']
  expect(findNearest('mesageTemplate', known)).toBe('messageTemplate')
  expect(findNearest('tokne', known)).toBe('token')
  expect(findNearest('NAME', known)).toBe('name')
  expect(findNearest('message', known)).toBe('messageTemplate')
  expect(findNearest('port', known)).toBeUndefined()
  expect(findNearest('x'.repeat(100_000), known)).toBeUndefined()
  expect(findNearest('name', [])).toBeUndefined()
})
