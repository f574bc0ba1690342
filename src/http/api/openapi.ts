// GET /api/openapi.json: both ports as an OpenAPI 3.1 document, for people who generate a client.
import type Router from '@koa/router'
import { z } from 'zod'
import { readVersion } from '../../base/package.ts'
import { Refused } from '../../model/api/run.ts'
import type { Guards } from '../operator.ts'
import { sendAnswer } from '../server.ts'
import type { Call } from './calls.ts'
import type { ApiParts } from './parts.ts'

type OpenApiParts = Pick<ApiParts, 'hooksUrl' | 'generation'>

export function addOpenApiRoute(router: Router, guards: Guards, parts: OpenApiParts): void {
  router.get('/api/openapi.json', guards.read, async (ctx) => {
    // loaded at the first request, because few gateways get one, and the schemas take time to load
    const [{ calls }, { namedSchemas }] = await Promise.all([import('./calls.ts'), import('./named-schemas.ts')])
    const { hooks } = parts.generation().config
    const hooksUrl = parts.hooksUrl() ?? hooks.path
    const body = JSON.stringify(buildDocument({ calls, named: { ...namedSchemas, Refused }, hooksUrl }))
    sendAnswer(ctx, { status: 200, body, headers: { 'cache-control': 'no-store' } })
  })
}

type DocumentParts = {
  readonly calls: readonly Call[]
  readonly named: Readonly<Record<string, z.ZodType>>
  readonly hooksUrl: string
}

function buildDocument({ calls, named, hooksUrl }: DocumentParts): object {
  const registry = z.registry<{ id: string }>()
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id })
  calls.forEach(({ answer, body }, index) => {
    if (answer !== undefined && !registry.has(answer)) registry.add(answer, { id: `answer ${index}` })
    if (body !== undefined && !registry.has(body)) registry.add(body, { id: `body ${index}` })
  })
  const schemas = convertSchemas(registry)
  const paths: Record<string, Record<string, object>> = {}
  for (const call of calls) {
    const find = (schema: z.ZodType): object => {
      const id = registry.get(schema)?.id ?? ''
      return Object.hasOwn(named, id) ? { $ref: toRef(id) } : (schemas[id] ?? {})
    }
    const { port, path, method } = call
    paths[path] ??= port === 'hooks' ? { servers: [{ url: hooksUrl }] as object } : {}
    const item = paths[path]
    if (item !== undefined) item[method] = buildOperation(call, find)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Hookloom',
      version: readVersion(),
      description: 'The run resource of the hook port, and the API of the admin port.',
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

function buildOperation(call: Call, find: (schema: z.ZodType) => object): object {
  const { port, method, path, summary, right, query = {}, body, isBodyOptional = false, answer } = call
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
      ...(port === 'hooks' && method === 'get' ? [waitParameter] : []),
    ],
    ...(body && { requestBody: { required: !isBodyOptional, content: json(find(body)) } }),
    responses: {
      200: success,
      ...(port === 'hooks' && method === 'delete'
        ? { 202: { ...success, description: 'The turn is being stopped.' } }
        : {}),
      default: { description: 'A refusal.', content: json({ $ref: toRef('Refused') }) },
    },
  }
}

const waitParameter = {
  name: 'Prefer',
  in: 'header',
  description:
    '`wait=<seconds>`, at most 55: waits for the end of the run (RFC 7240). With `return=representation`, the answer to a hook has `runs`.',
  schema: { type: 'string' },
}
