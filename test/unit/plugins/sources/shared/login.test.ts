// A login that runs share: how often it is tried, and what those who may not log in are told.
import { expect, test } from 'vitest'
import { SourceFailure } from '../../../../../src/model/source.ts'
import { createSharedLogin } from '../../../../../src/plugins/sources/shared/login.ts'

function createServer(answers: readonly (SourceFailure | string)[]) {
  const time = { now: 1_000 }
  const left = [...answers]
  let asked = 0
  const login = createSharedLogin(
    () => time.now,
    async () => {
      asked += 1
      const answer = left.shift() ?? 'in'
      if (typeof answer !== 'string') throw answer
      return answer
    },
  )
  return { time, login, asked: () => asked }
}

const refused = () => new SourceFailure('The password is refused.', { retryAfterMs: 300_000 })

test('all who ask at the same time get one login, and the next one logs in again', async () => {
  const { login, asked } = createServer(['one', 'two'])
  expect(await Promise.all([login(), login(), login()])).toEqual(['one', 'one', 'one'])
  expect(await login()).toBe('two')
  expect(asked()).toBe(2)
})

test('after a refusal, nobody logs in before its pause is over, and each is told for how long', async () => {
  const { time, login, asked } = createServer([refused(), 'in'])
  const both = await Promise.allSettled([login(), login()])
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  time.now += 60_000
  await expect(login()).rejects.toMatchObject({
    message: 'The password is refused. The next login, for all runs that wait for files, is in 240 s.',
    retryAfterMs: 240_000,
  })
  expect(asked()).toBe(1)
  time.now += 240_000
  expect(await login()).toBe('in')
  expect(asked()).toBe(2)
})

test('the pause of a server that does not answer grows, and begins anew after a login', async () => {
  const gone = () => new SourceFailure('The server does not answer.')
  const { time, login } = createServer([gone(), gone(), 'in', gone()])
  const pauses: (number | string | undefined)[] = []
  for (let at = 0; at < 4; at++) {
    pauses.push(await login().catch(({ retryAfterMs }: SourceFailure) => retryAfterMs))
    time.now += 300_000
  }
  expect(pauses).toEqual([5_000, 15_000, 'in', 5_000])
})
