// Failures on the way to a provider, which every channel must classify in the same way.
import { expect, it } from 'vitest'
import type { Channel } from '../../src/model/channel.ts'
import { toOutgoing } from '../unit/plugins/channels/stage.ts'
import type { Loopback } from './fakes/loopback.ts'

export type Stage = {
  readonly channel: Channel
  /** The provider that receives the message. */
  readonly fake: Loopback
  /** A recipient that the fake knows. */
  readonly to: string
  /** A text that no detail may show. */
  readonly secret: string
}

/** Defines the tests that every channel has. `timeoutMs` is the time for which the channel waits for an answer. */
export function testTroubles(start: (options: { timeoutMs?: number }) => Promise<Stage>): void {
  it('a rate limit is reported with the time to wait, and nothing is sent twice', async () => {
    const { channel, fake, to, secret } = await start({})
    fake.planAnswers({ status: 429, headers: { 'retry-after': '7' }, body: { error: 'slow down' } })
    const result = await channel.send(toOutgoing({ to }))
    expect(result).toMatchObject({ kind: 'rate-limited', retryAfterMs: 7_000 })
    expect(fake.received).toHaveLength(1)
    expectNoSecret(result, secret, fake)
  })

  it('a provider that answers 503 has posted nothing, so the failure is transient', async () => {
    const { channel, fake, to } = await start({})
    fake.planAnswers({ status: 503, body: 'Service Unavailable' })
    expect(await channel.send(toOutgoing({ to }))).toMatchObject({ kind: 'transient' })
  })

  it('an error inside the provider has an unknown result', async () => {
    const { channel, fake, to } = await start({})
    fake.planAnswers({ status: 500, body: 'Internal Server Error' })
    expect(await channel.send(toOutgoing({ to }))).toMatchObject({ kind: 'ambiguous' })
  })

  it('a connection that is cut after the message was sent has an unknown result', async () => {
    const { channel, fake, to, secret } = await start({})
    fake.planAnswers('reset')
    const result = await channel.send(toOutgoing({ to }))
    expect(result).toMatchObject({ kind: 'ambiguous' })
    expect(fake.received).toHaveLength(1)
    expectNoSecret(result, secret, fake)
  })

  it('a provider that never answers is abandoned after the configured time', async () => {
    const { channel, fake, to, secret } = await start({ timeoutMs: 300 })
    fake.planAnswers('silence')
    const result = await channel.send(toOutgoing({ to }))
    expect(result).toMatchObject({ kind: 'ambiguous', detail: expect.stringContaining('no answer in 0.3 s') })
    expectNoSecret(result, secret, fake)
  })

  it('a provider that refuses connections has posted nothing, so the failure is transient', async () => {
    const { channel, fake, to, secret } = await start({})
    fake.close()
    const result = await channel.send(toOutgoing({ to }))
    expect(result).toMatchObject({ kind: 'transient' })
    expectNoSecret(result, secret, fake)
  })

  it('a redirect is not followed, so that no other host gets the credential', async () => {
    const { channel, fake, to, secret } = await start({})
    fake.planAnswers({ status: 307, headers: { location: `${fake.url}/elsewhere` }, body: '' })
    const result = await channel.send(toOutgoing({ to }))
    expect(result).toMatchObject({ kind: 'permanent' })
    expect(fake.received).toHaveLength(1)
    expectNoSecret(result, secret, fake)
  })
}

function expectNoSecret(result: object, secret: string, fake: Loopback): void {
  const shown = JSON.stringify(result)
  expect(shown).not.toContain(secret)
  expect(shown).not.toContain(new URL(fake.url).host)
  expect(shown).not.toContain('The build is green')
}
