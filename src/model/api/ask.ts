// The types of the requests and answers of calls, and the request that a client sends.
import type { z } from 'zod'
import type { CallBody } from './bodies.ts'
import type { calls } from './calls.ts'

type Calls = typeof calls
export type CallName = keyof Calls

type ParamName<Path> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | ParamName<Rest> : never
export type CallParams<Name extends CallName> = { readonly [Param in ParamName<Name>]: string }
export type CallQuery<Name extends CallName> = keyof Calls[Name]['query'] & string
export type CallSchema<Name extends CallName> = Calls[Name] extends { readonly body: infer Body extends CallBody }
  ? Body['schema']
  : z.ZodNever
export type CallAnswer<Name extends CallName> = Calls[Name]['answer'] extends z.ZodType
  ? z.infer<Calls[Name]['answer']>
  : undefined

/** `undefined`: the parameter is left out. */
type QueryValues<Param extends string> = { readonly [Name in Param]?: string | number | undefined }

/** What a client gives. */
export type Asked<Name extends CallName> = {
  readonly query?: QueryValues<CallQuery<Name>>
} & (ParamName<Name> extends never ? unknown : { readonly params: CallParams<Name> }) &
  (Calls[Name] extends { readonly body: { readonly isOptional: true } }
    ? { readonly body?: z.input<CallSchema<Name>> }
    : Calls[Name] extends { readonly body: CallBody }
      ? { readonly body: z.input<CallSchema<Name>> }
      : unknown)

/** Like `Asked`, of any call. */
export type AnyAsked = {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: QueryValues<string>
  readonly body?: object | undefined
}

export function toRequest(name: CallName, { params = {}, query = {}, body }: AnyAsked) {
  const [method = '', path = ''] = name.split(' ')
  const filled = path.replace(/\{(\w+)\}/, (_, param: string) => encodeURIComponent(params[param] ?? ''))
  const given = Object.entries(query).flatMap(([param, value]) =>
    value === undefined ? [] : [[param, String(value)] as [string, string]],
  )
  const target = given.length === 0 ? filled : `${filled}?${new URLSearchParams(given)}`
  return { method, target, ...(body && { body: JSON.stringify(body) }) }
}
