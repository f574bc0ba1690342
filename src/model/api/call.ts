// What the declaration of a call has.
import type { z } from 'zod'
import type { CallBody } from './bodies.ts'
import type { AdminRight } from './rights.ts'

export type Call = {
  readonly summary: string
  /** The right that the token needs. `none`: the call needs no token. */
  readonly right: AdminRight | 'none'
  /** The right that the token needs if the request has a body. */
  readonly rightWithBody?: AdminRight
  /** The key that a browser has for the page is not enough. */
  readonly isForTokens?: boolean
  /**
   * How the audit log names the call. Null: it changes nothing, or its handler writes the entry. The target of the act is the parameter in the path;
   * without one, the first query parameter; without any, the first field of `body.shown`.
   */
  readonly act: string | null
  /** The query parameters, with their meaning. The entry of an act shows them, so none has a payload or a secret. */
  readonly query: Readonly<Record<string, string>>
  readonly body?: CallBody
  /** Without `ok`, which every answer has. Undefined: the answer is a stream of events. */
  readonly answer: z.ZodType | undefined
}

/** The part of a call that the OpenAPI document shows. */
export type DocumentedCall = Pick<Call, 'summary' | 'query' | 'answer'> & {
  readonly right: string
  readonly body?: Pick<CallBody, 'schema' | 'isOptional'>
}

type Query = Call['query']
type Rest = Partial<Pick<Call, 'rightWithBody' | 'isForTokens' | 'query' | 'body'>>

/** A GET. */
export function read<Answer extends z.ZodType | undefined, const Asked extends Query = {}>(
  summary: string,
  answer: Answer,
  // as: the type is {} if there are none
  query = {} as Asked,
) {
  return { right: 'read', act: null, summary, answer, query } as const
}

const declare =
  <const Right extends Call['right']>(right: Right) =>
  <Answer extends z.ZodType, const Given extends Rest = {}>(
    act: string | null,
    summary: string,
    answer: Answer,
    // as: see `read`
    given = {} as Given,
  ) => ({ right, act, summary, answer, query: {}, ...given })

/** Calls that are no GET, with the name of the act: for a token with the right `operate`, with the right `admin`, or without a token. */
export const operate = declare('operate')
export const administer = declare('admin')
export const openToAll = declare('none')
