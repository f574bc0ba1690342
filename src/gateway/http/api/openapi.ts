// GET /api/openapi.json: both ports as an OpenAPI 3.1 document, for people who generate a client.
import type Router from '@koa/router'
import { z } from 'zod'
import { readVersion } from '../../../base/package.ts'
import { Refused } from '../../../model/api/run.ts'
import type { DocumentedCall } from '../../../model/api/call.ts'
import { anyReader, type Guard } from '../operator.ts'
import { sendAnswer } from '../server.ts'
import type { ApiParts } from './parts.ts'

type OpenApiParts = Pick<ApiParts, 'hooksUrl' | 'generation'>

export function addOpenApiRoute(router: Router, guard: Guard, parts: OpenApiParts): void {
  router.get('/api/openapi.json', (ctx) =>
    guard(ctx, anyReader, async () => {
      // loaded at the first request, because the schemas take time to load
      const [{ calls }, { hookCalls }, { namedSchemas }] = await Promise.all([
        import('../../../model/api/calls.ts'),
        import('../../../model/api/hook-calls.ts'),
        import('./named-schemas.ts'),
      ])
      const hooksUrl = parts.hooksUrl() ?? parts.generation().config.hooks.path
      const named = { ...namedSchemas, Refused }
      const body = JSON.stringify(buildDocument({ calls: { ...hookCalls, ...calls }, named, hooksUrl }))
      sendAnswer(ctx, { status: 200, body, headers: { 'cache-control': 'no-store' } })
    }),
  )
}

type DocumentParts = {
  readonly calls: Readonly<Record<string, DocumentedCall>>
  readonly named: Readonly<Record<string, z.ZodType>>
  readonly hooksUrl: string
}

function buildDocument({ calls, named, hooksUrl }: DocumentParts): object {
  const registry = z.registry<{ id: string }>()
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id })
  const all = Object.entries(calls)
  for (const [name, { answer, body }] of all) {
    if (answer !== undefined && !registry.has(answer)) registry.add(answer, { id: `answer of ${name}` })
    if (body !== undefined && !registry.has(body.schema)) registry.add(body.schema, { id: `body of ${name}` })
  }
  const schemas = convertSchemas(registry)
  const find = (schema: z.ZodType): object => {
    const id = registry.get(schema)?.id ?? ''
    return Object.hasOwn(named, id) ? { $ref: toRef(id) } : (schemas[id] ?? {})
  }
  const paths: Record<string, Record<string, object>> = {}
  for (const [name, call] of all) {
    const [method = '', path = ''] = name.split(' ')
    const item = (paths[path] ??= isOfHookPort(path) ? { servers: [{ url: hooksUrl }] } : {})
    item[method.toLowerCase()] = buildOperation({ ...call, method: method.toLowerCase(), path }, find)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Hookloom',
      version: readVersion(),
      description: 'The runs and waits of the hook port, and the API of the admin port.',
    },
    servers: [{ url: '/', description: 'The admin port.' }],
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'A token with the right that the operation names.' },
      },
      schemas: Object.fromEntries(Object.keys(named).map((id) => [id, schemas[id] ?? {}])),
    },
  }
}

const isOfHookPort = (path: string) => !path.startsWith('/api/')

function toRef(id: string): string {
  return `#/components/schemas/${id}`
}

/** JSON Schemas. Those of answers allow unknown fields, because later versions may add fields. */
function convertSchemas(registry: z.core.$ZodRegistry<{ id: string }>): Record<string, object> {
  const { schemas } = z.toJSONSchema(registry, {
    io: 'input',
    target: 'draft-2020-12',
    uri: toRef,
    override({ jsonSchema }) {
      // a list is `readOnly` because code here must not change it; a client may change its copy
      delete jsonSchema.readOnly
    },
  })
  const isPart = ([key]: [string, unknown]) => key !== '$schema' && key !== '$id'
  return Object.fromEntries(
    Object.entries(schemas).map(([id, schema]) => [id, Object.fromEntries(Object.entries(schema).filter(isPart))]),
  )
}

function buildOperation(
  { method, path, summary, right, query, body, answer }: DocumentedCall & { method: string; path: string },
  find: (schema: z.ZodType) => object,
): object {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  const words = path
    .replace(/^\/api\//, '')
    .split(/[^A-Za-z]+/)
    .filter((word) => word !== '')
  const json = (schema: object) => ({ 'application/json': { schema } })
  const events = { 'text/event-stream': { schema: { type: 'string' } } }
  const ok = { type: 'object', required: ['ok'], properties: { ok: { const: true } } }
  const content = answer === undefined ? events : json({ allOf: [ok, find(answer)] })
  const success = {
    description: 'Done.',
    content,
  }
  return {
    operationId: [method, ...words.map((word) => word.charAt(0).toUpperCase() + word.slice(1))].join(''),
    summary,
    description: right === 'none' ? 'Needs no token.' : `Needs the right \`${right}\`.`,
    ...(right === 'none' ? { security: [] } : {}),
    parameters: [
      ...names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
      ...Object.entries(query).map(([name, description]) => ({
        name,
        in: 'query',
        description,
        schema: { type: 'string' },
      })),
      ...(isOfHookPort(path) && method !== 'delete' ? [waitParameter] : []),
    ],
    ...(body && { requestBody: { required: body.isOptional !== true, content: json(find(body.schema)) } }),
    responses: {
      200: success,
      ...(isOfHookPort(path) && method !== 'get' ? { 202: { ...success, description: 'It is not over yet.' } } : {}),
      default: { description: 'A refusal.', content: json({ $ref: toRef('Refused') }) },
    },
  }
}

const waitParameter = {
  name: 'Prefer',
  in: 'header',
  description:
    '`wait=<seconds>`, at most 55: waits for the end (RFC 7240). With `return=representation`, the answer to a hook has `runs`.',
  schema: { type: 'string' },
}
