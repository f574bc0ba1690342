// Many rows as the parameters of one statement: an array for each column.
import type { NewEvent } from '../records.ts'
import type { Param } from './pool.ts'

export type Columns = readonly (readonly [name: string, type: string])[]
export type Value = Exclude<Param, readonly unknown[]>

/** The columns of a table, as SQL declares them. */
export function declareColumns(text: string): Columns {
  return text.split(/,\s+/).map((column) => {
    const [name = '', type = ''] = column.split(' ')
    return [name, type]
  })
}

export const joinNames = (columns: Columns) => columns.map(([name]) => name).join(', ')

/** The rows as a table `name`, with their numbers from 1 in the column `place`. Their parameters begin at `$first`. */
export const unnest = (columns: Columns, first: number, name = 'input') =>
  `unnest(${columns.map(([, type], index) => `$${first + index}::${type}[]`).join(', ')})
    WITH ORDINALITY AS ${name} (${joinNames(columns)}, place)`

export function toColumns(rows: readonly (readonly Value[])[], { length }: Columns): Param[] {
  return Array.from({ length }, (_, column) => rows.map((row) => row[column] ?? null))
}

/** The columns of a new event that its values come from. */
export const newEventColumns = declareColumns(
  'agent_id text, session_key text, text text, source text, trusted smallint, wakes smallint',
)

export function toEventValues({ agentId, sessionKey, text, source, trusted, wakes }: NewEvent): Value[] {
  return [agentId, sessionKey, text, source, trusted ? 1 : 0, wakes ? 1 : 0]
}
