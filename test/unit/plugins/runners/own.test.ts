// Runners of plugins: what their results and exceptions mean.
import { expect, test } from 'vitest'
import type { RunnerDefinition, RunnerParts } from '../../../../src/model/runner.ts'
import { createOwnRunner } from '../../../../src/plugins/runners/shared/own.ts'
import { toRunRequest } from '../../../e2e/runner-request.ts'
import { createHost } from './stage.ts'

const io = { signal: new AbortController().signal, log() {} }
const host = createHost({ id: 'polly' })

function open(parts: RunnerParts, more: Partial<RunnerDefinition> = {}) {
  const definition = { name: 'parrot', about: 'x', create: () => parts, ...more }
  const options = { token: 'tk_0123456789' }
  const about = { kind: 'sound' as const, name: 'polly', label: 'p.ts' }
  return createOwnRunner(
    { ...about, definition, options, hash: 'h', describeThrown: () => 'a TypeError at p.ts:1' },
    host,
  )
}

test('no detail of a failed turn shows a secret of the options', async () => {
  const detail = 'The key tk_0123456789 is not valid.'
  const runner = open({ run: async () => ({ status: 'error', retryable: false, detail }) })
  expect(await runner.run(toRunRequest({}), io)).toEqual({
    status: 'error',
    retryable: false,
    detail: 'The key *** is not valid.',
    quotes: true,
  })
})

test('a runner of a plugin may hand a turn to an agent that answers itself', async () => {
  const forwarded = { status: 'forwarded', id: 'r-1', detail: 'The key tk_0123456789 was accepted.' } as const
  const runner = open({ run: async () => forwarded })
  expect(await runner.run(toRunRequest({}), io)).toEqual({ ...forwarded, detail: 'The key *** was accepted.' })
  const unnamed = open({ run: async () => ({ ...forwarded, id: '' }) })
  expect(await unnamed.run(toRunRequest({}), io)).toMatchObject({ status: 'error', retryable: true })
})

test('a runner of a plugin gets files if its definition says so, also while its code throws', () => {
  const run: RunnerParts['run'] = async () => ({ status: 'ok', text: 'x' })
  expect(open({ run }).readsFiles).toBeUndefined()
  expect(open({ run }, { readsFiles: true }).readsFiles).toBe(true)
  const create = () => {
    throw new Error('no')
  }
  expect(open({ run }, { readsFiles: true, create }).readsFiles).toBe(true)
})

test('a probe that throws, or returns anything else, is a failure that names the plugin', async () => {
  const run: RunnerParts['run'] = async () => ({ status: 'ok', text: 'x' })
  const thrown = () => Promise.reject(new TypeError('no'))
  expect(await open({ run, probe: thrown }).probe?.(io.signal)).toEqual({
    ok: false,
    detail: 'The runner p.ts threw a TypeError at p.ts:1.',
  })
  // as: authors may return anything
  expect(await open({ run, probe: async () => 7 as never }).probe?.(io.signal)).toMatchObject({ ok: false })
  expect(open({ run }).probe).toBeUndefined()
})
