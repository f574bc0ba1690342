// The files of a turn: their limits over all messages, and what becomes of a source that hangs or fails.
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fetchFiles } from '../../../../src/gateway/jobs/steps/files.ts'
import type { JobContext } from '../../../../src/gateway/jobs/step.ts'
import type { Runner } from '../../../../src/model/runner.ts'
import { SourceFailure } from '../../../../src/model/source.ts'
import type { ReadSourceFiles, SourceFile } from '../../../../src/model/source-files.ts'
import { makeFolder } from '../../../e2e/gateway.ts'
import { planAgent } from './stage.ts'

const mib = 1024 * 1024
const reader: Runner = { id: 'reader', readsFiles: true, run: async () => ({ status: 'ok', text: '' }) }

const planWith = (...files: SourceFile[]) =>
  planAgent({ files: { source: 'loft', account: 'north', files, others: 0 } })

const toFile = (name: string, bytes?: number): SourceFile => ({ name, ref: name, bytes })

function createTurn(readSourceFiles: ReadSourceFiles) {
  const ending = new AbortController()
  const workspace = makeFolder()
  // as: the step reads these fields only
  const context = { clock: Date.now, lease: { signal: ending.signal }, readSourceFiles } as unknown as JobContext
  const fetchAll = (...plans: ReturnType<typeof planWith>[]) =>
    fetchFiles(plans, { jobId: 'run-1', runner: reader, workspace }, context)
  return { workspace, end: () => ending.abort(), fetchAll }
}

/** Every file has the size of `bytes`. */
function createSource(bytes: number) {
  const asked: (readonly string[])[] = []
  const read: ReadSourceFiles = ({ refs }) => {
    asked.push(refs)
    return (async function* () {
      for (const _ of refs) yield new Uint8Array(bytes)
    })()
  }
  return { asked, read }
}

test('the files of all messages of a turn are under one limit, of their number and of their bytes', async () => {
  const { read, asked } = createSource(9 * mib)
  const { workspace, fetchAll } = createTurn(read)
  const plans = [planWith(toFile('a'), toFile('b')), planWith(toFile('c', 9 * mib), toFile('d'))]
  const fetched = await fetchAll(...plans)
  const texts = fetched.kind === 'ready' ? plans.map((plan) => fetched.texts.get(plan)?.split('\n').slice(1)) : []
  const tooMuch = 'not kept, because the files of a turn have at most 25 MiB.'
  expect(texts).toEqual([
    ['hookloom-files/run-1/1-a (9438 kB)', 'hookloom-files/run-1/2-b (9438 kB)'],
    [`3-c: ${tooMuch}`, `4-d: ${tooMuch}`],
  ])
  expect(asked).toEqual([['a', 'b'], ['d']])
  expect(readdirSync(join(workspace, 'hookloom-files/run-1'))).toEqual(['1-a', '2-b'])
  const many = Array.from({ length: 15 }, (_, at) => toFile(`${at}`))
  const small = createTurn(createSource(1).read)
  const gathered = [planWith(...many), planWith(...many), planWith(...many)]
  const all = await small.fetchAll(...gathered)
  const last = all.kind === 'ready' ? gathered.slice(1).map((plan) => all.texts.get(plan)?.split('\n').slice(1)) : []
  const tooMany = 'not kept, because a turn gets at most 20 files.'
  expect(last[0]?.slice(5)).toEqual([`10 more: ${tooMany}`])
  expect(last[1]).toEqual([`15 more: ${tooMany}`])
  expect(readdirSync(join(small.workspace, 'hookloom-files/run-1'))).toHaveLength(20)
})

test('a source of which nothing is wanted is not asked', async () => {
  const { read, asked } = createSource(1)
  await createTurn(read).fetchAll(planWith(toFile('huge', 11 * mib)))
  expect(asked).toEqual([])
})

test('a source that hangs does not hold the turn when its lease ends', async () => {
  let closed = 0
  const hanging: AsyncIterable<Uint8Array> = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise(() => {}),
      return: async () => ((closed += 1), { done: true, value: undefined }),
    }),
  }
  const { end, fetchAll } = createTurn(() => hanging)
  const fetching = fetchAll(planWith(toFile('a')))
  end()
  expect(await fetching).toEqual({ kind: 'aborted' })
  expect(closed).toBe(1)
})

test.each([
  ['a failure of the source', new SourceFailure('The loft is closed.'), 'could not be fetched. The loft is closed.'],
  [
    'a workspace that cannot be written',
    Object.assign(new Error('EROFS: /w/a.txt'), { code: 'EROFS' }),
    'could not be written below <workspace> (EROFS). Give the gateway the right and the room.',
  ],
  ['an exception, whose text is not shown', new Error('a.txt'), 'could not be fetched. The system reports an error.'],
])('%s means that the turn waits', async (_, thrown, why) => {
  const { workspace, fetchAll } = createTurn(() =>
    (async function* () {
      yield new Uint8Array(1)
      throw thrown
    })(),
  )
  const detail = `The files of the message ${why.replace('<workspace>', workspace)}`
  expect(await fetchAll(planWith(toFile('a'), toFile('b')))).toEqual({ kind: 'unavailable', detail })
})

test('a source that asks to wait is not asked again before', async () => {
  const { fetchAll } = createTurn(() => {
    throw new SourceFailure('The password was refused.', { retryAfterMs: 300_000 })
  })
  expect(await fetchAll(planWith(toFile('a')))).toMatchObject({ kind: 'unavailable', retryAfterMs: 300_000 })
})

test('a file that cannot be written means that the turn waits, and the source is closed', async () => {
  let isClosed = false
  const { workspace, fetchAll } = createTurn(() =>
    (async function* () {
      try {
        rmSync(join(workspace, 'hookloom-files/run-1'), { recursive: true })
        yield new Uint8Array(1)
        yield new Uint8Array(1)
      } finally {
        isClosed = true
      }
    })(),
  )
  const detail = 'The files of the message could not be fetched. The system reports ENOENT.'
  expect(await fetchAll(planWith(toFile('a'), toFile('b')))).toEqual({ kind: 'unavailable', detail })
  expect(isClosed).toBe(true)
})
