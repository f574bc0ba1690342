// A thousand runs wait for a slow model: sessions keep their order, and no session starves.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { planAgent, createStage, ok, pass, scriptChannel, scriptRunner } from './stage.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const runs = 1_000
const turnMs = 1_000

/** Three of ten runs are of one busy session, the rest of forty-one others. */
function chooseSession(n: number): string {
  return n % 10 < 3 ? 'hook:busy' : `hook:${n % 41}`
}

test(
  'runs of a session keep their order, and on average no session waits three times as long as the others',
  { timeout: 120_000 },
  async () => {
    const stage = createStage()
    const begun = new Map<string, { n: number; waited: number }[]>()
    const { runner, turns } = scriptRunner(({ sessionKey, message }) => {
      begun.set(sessionKey, [...(begun.get(sessionKey) ?? []), { n: Number(message), waited: Date.now() - start }])
      setTimeout(() => turns.find(({ request }) => request.message === message)?.end(ok('Done')), turnMs)
      return undefined
    })
    const start = Date.now()
    const plans = Array.from({ length: runs }, (_, n) =>
      planAgent({ sessionKey: chooseSession(n), action: { message: String(n), deliver: false } }),
    )
    await stage.accept(...plans)
    stage.openWorker({ runner, channels: new Map([['console', scriptChannel().channel]]) })
    while (turns.length < runs) await pass(turnMs)

    const means = [...begun.values()].map((ofSession) => {
      expect(ofSession.map(({ n }) => n)).toEqual(ofSession.map(({ n }) => n).toSorted((a, b) => a - b))
      return ofSession.reduce((total, { waited }) => total + waited, 0) / ofSession.length
    })
    expect(begun.size).toBe(42)
    const all = means.reduce((total, mean) => total + mean, 0)
    for (const mean of means) expect(mean).toBeLessThan((3 * (all - mean)) / (means.length - 1))
  },
)
