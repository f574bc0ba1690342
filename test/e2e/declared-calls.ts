// The declared calls of both ports as a list, with method and path apart.
import { calls as adminCalls } from '../../src/model/api/calls.ts'
import { hookCalls } from '../../src/model/api/hook-calls.ts'

type Listed = {
  readonly right: string
  readonly act?: string | null
  readonly answer: { parse(value: unknown): unknown } | undefined
}

export const calls = Object.entries<Listed>({ ...hookCalls, ...adminCalls }).map(([name, call]) => {
  const [method = '', path = ''] = name.split(' ')
  const { act = null } = call
  return { ...call, act, method: method.toLowerCase(), path, port: path.startsWith('/api/') ? 'admin' : 'hooks' }
})

const named = calls.filter(({ port, method, right }) => port === 'admin' && method !== 'get' && right !== 'none')
const toName = ({ method, path }: (typeof calls)[number]) => `${method.toUpperCase()} ${path}`
export const acts = Object.fromEntries(
  named.flatMap((call) => (call.act === null ? [] : [[toName(call), { name: call.act }] as const])),
)
export const readOnlyCalls = named.filter(({ act }) => act === null).map(toName)
