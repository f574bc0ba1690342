import { expect, test } from 'vitest'
import { findNearest } from '../../../src/base/text.ts'
import { listKeysAt, renderConfigSchema } from '../../../src/config/schema.ts'

type Node = { path: string; schema: Record<string, unknown> }

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Every schema of a key, with its path. */
function toNodes(schema: unknown, path: string): Node[] {
  if (!isRecord(schema)) return []
  const { properties, items, anyOf } = schema
  return [
    { path, schema },
    ...Object.entries(isRecord(properties) ? properties : {}).flatMap(([key, child]) =>
      toNodes(child, `${path}.${key}`),
    ),
    ...toNodes(items, `${path}[]`),
    ...(Array.isArray(anyOf) ? anyOf : []).flatMap((child: unknown) => toNodes(child, path)),
  ]
}

test('the JSON Schema describes every key, and refuses unknown keys as the loader does', () => {
  const nodes = toNodes(JSON.parse(renderConfigSchema()), '')
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

test('the JSON Schema is draft-7, and requires no key that has a default', () => {
  const schema = JSON.parse(renderConfigSchema())
  expect(schema.$schema).toBe('http://json-schema.org/draft-07/schema#')
  expect(schema.required).toBeUndefined()
  expect(JSON.stringify(schema)).not.toContain(String(Number.MAX_SAFE_INTEGER))
})

test('listKeysAt finds keys through arrays and alternatives, and none where any key is valid', () => {
  expect(listKeysAt(['hooks', 'mappings', 3, 'transform'])).toEqual(['module', 'export', 'shadow'])
  expect(listKeysAt(['hooks', 'presets', 0])).toEqual(['name'])
  expect(listKeysAt(['models', 'aliases'])).toEqual([])
  expect(listKeysAt(['constructor'])).toEqual([])
})

test('findNearest returns the word with the fewest edits, and no word that is too far away', () => {
  const known = ['messageTemplate', 'textTemplate', 'name', 'to', 'token', 'path']
  expect(findNearest('mesageTemplate', known)).toBe('messageTemplate')
  expect(findNearest('tokne', known)).toBe('token')
  expect(findNearest('NAME', known)).toBe('name')
  expect(findNearest('message', known)).toBe('messageTemplate')
  expect(findNearest('port', known)).toBeUndefined()
  expect(findNearest('x'.repeat(100_000), known)).toBeUndefined()
  expect(findNearest('name', [])).toBeUndefined()
})
