import { expect, test } from 'vitest'
import { buildPayload } from '../../../src/inspector/typed.ts'

const route = { agentId: 'main', model: 'echo', to: [] } as const

/** The payload for a hook with a mapping for each template. */
function buildFor(...templates: string[]): unknown {
  const facts = { id: 'a', action: 'agent', conditions: null, scheme: null, transform: null, ...route } as const
  const mappings = templates.map((template) => ({ ...facts, template, isEditable: true, warnings: [] }))
  return JSON.parse(buildPayload(mappings))
}

test('the first payload of the bench has each field that a template reads', () => {
  expect(buildFor('{{title}} by {{ author.name | truncate: 9 }}', '{{author.id}}')).toEqual({
    title: 'title',
    author: { name: 'name', id: 'id' },
  })
  expect(buildFor(`{{fields["System.Title"]}} {{['a.b'].c}} {{headers["x-id"]}}`)).toEqual({
    fields: { 'System.Title': 'System.Title' },
    'a.b': { c: 'c' },
  })
  expect(buildFor('{{payload.event.type}} {{event.type}}')).toEqual({ event: { type: 'type' } })
})

test('the first payload of the bench has no field for a placeholder that reads the request itself', () => {
  expect(buildFor('{{source}} {{event}} {{path}} {{now}} {{payload}} {{headers.x-id}} {{query.page}}')).toEqual({})
})

test('the first payload has what the first mapping asks for, if no mapping takes every request', () => {
  const facts = {
    id: 'a',
    action: 'agent',
    scheme: null,
    transform: null,
    isEditable: true,
    warnings: [],
    ...route,
  } as const
  const picky = { ...facts, conditions: '{"payload":{"action":["opened","closed"],"n":{"gt":4},"pr.state":"open"}}' }
  const asked = { ...picky, template: '{{pr.title}}' }
  expect(JSON.parse(buildPayload([asked]))).toEqual({ action: 'opened', pr: { state: 'open', title: 'title' } })
  expect(JSON.parse(buildPayload([asked, { ...facts, conditions: null, template: '{{text}}' }]))).toEqual({
    pr: { title: 'title' },
    text: 'text',
  })
})
