// The gateway asks senders for deliveries that failed, on each engine.
import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import { startGitHub, githubToken } from './fakes/github-deliveries.ts'
import { gitlabToken, startGitLab } from './fakes/gitlab-events.ts'
import { startStripe, stripeKey } from './fakes/stripe-events.ts'
import { closeAfterEach, engines } from './edit-stage.ts'
import { gatewayToken, makeConfigDir } from './gateway.ts'
import { startInside } from './inside.ts'

closeAfterEach()

const minute = 60_000
const secrets = { github: 'github-secret-of-it', gitlab: 'gitlab-secret-of-it', stripe: 'whsec_stripe-secret' }

function createClock() {
  let now = Date.parse('2026-11-20T10:00:00Z')
  return Object.assign(() => now, { advance: (ms: number) => void (now += ms) })
}

async function startSenders(clock: () => number) {
  const github = await startGitHub({ clock, pageSize: 8 })
  const gitlab = await startGitLab({ clock })
  const stripe = await startStripe({ clock })
  const mappings = [
    {
      id: 'github',
      match: { path: 'github' },
      verify: { scheme: 'github', secret: secrets.github },
      messageTemplate: 'github {{n}}',
      deliver: false,
      recover: { sender: 'github', repository: 'acme/app', hookId: 77, token: githubToken, baseUrl: github.url },
    },
    {
      match: { path: 'gitlab' },
      verify: { scheme: 'gitlab-token', secret: secrets.gitlab },
      messageTemplate: 'gitlab {{n}}',
      deliver: false,
      recover: {
        sender: 'gitlab',
        project: 'acme/app',
        hookId: 5,
        token: gitlabToken,
        baseUrl: `${gitlab.url}/api/v4`,
      },
    },
    {
      id: 'stripe',
      match: { path: 'stripe' },
      verify: { scheme: 'stripe', secret: secrets.stripe },
      messageTemplate: 'stripe {{data.object.n}}',
      deliver: false,
      recover: { sender: 'stripe', hookId: 'we_1', token: stripeKey, baseUrl: stripe.url },
    },
  ]
  return { github, gitlab, stripe, mappings }
}

/** A gateway on this store, with the lines of its log in `lines`. */
async function start(store: Store, dir: string, clock: () => number) {
  const lines: string[] = []
  const add = (_fields: object, text: string) => void lines.push(text)
  const log = { debug() {}, info: add, warn: add, error: add }
  const gateway = await startInside({ dir, store, clock, log })
  const printed = async (pattern: RegExp) => await expect.poll(() => lines.join('\n')).toMatch(pattern)
  /** Resolves when no delivery is pending. */
  const settled = async () => void (await expect.poll(() => store.countInState('pending')).toBe(0))
  return { ...gateway, store, lines, printed, settled }
}

/** The messages of the runs that deliveries of a hook became. */
async function readMessages(store: Store, hook: string): Promise<string[]> {
  const records = await store.deliveries({ limit: 5_000, hook })
  return records.flatMap(({ jobs }) =>
    jobs.flatMap(({ planned }) => (planned.kind === 'agent' ? [planned.action.message] : [])),
  )
}

const listNumbers = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index)

/** Posts the request that GitHub sends when somebody presses "Redeliver". */
function redeliver(url: string, guid: string, payload: object): Promise<Response> {
  const body = JSON.stringify(payload)
  const signature = `sha256=${createHmac('sha256', secrets.github).update(body).digest('hex')}`
  const headers = {
    'content-type': 'application/json',
    'x-github-event': 'push',
    'x-github-delivery': guid,
    'x-hub-signature-256': signature,
  }
  return fetch(`${url}/github`, { method: 'POST', headers, body })
}

for (const [name, why, open] of engines) {
  describe.skipIf(why)(`recover on ${name}`, () => {
    test('deliveries that three senders tried during an hour without a gateway run once each', async () => {
      const openStore = await open()
      const clock = createClock()
      const { github, gitlab, stripe, mappings } = await startSenders(clock)
      const dir = makeConfigDir({ config: { hooks: { mappings } } })
      const guid = github.addAttempt({ payload: { n: 'before' } })
      const first = await start(openStore(), dir, clock)
      await first.printed(/stripe: recover begins now/)
      await first.stop()

      for (const n of listNumbers(0, 20)) {
        clock.advance(minute)
        github.addAttempt({ payload: { n } })
        gitlab.addAttempt({ payload: { n } })
        stripe.addEvent({ object: { n } })
      }
      // these deliveries succeeded, or are not for this webhook
      github.addAttempt({ guid, status: 200, redelivery: true })
      gitlab.addAttempt({ status: '200' })
      stripe.addEvent({ type: 'invoice.paid' })
      clock.advance(40 * minute)
      const twice = github.addAttempt({ payload: { n: 20 } })
      clock.advance(2 * minute)
      const second = await start(openStore(), dir, clock)
      let answer: Response | undefined
      // somebody redelivers one delivery by hand while the gateway asks for the others
      github.onRequest('/deliveries/', async () => {
        if (answer !== undefined) return
        answer = new Response()
        answer = await redeliver(second.url, twice, { n: 20 })
      })
      await second.printed(
        /not listening 10:00–11:02 UTC; github: 2[01] of 2[01] recovered; gitlab: 20 of 20 recovered; stripe: 20 of 20 recovered/,
      )
      expect(answer?.status).toBe(200)
      await second.settled()
      await second.stop()

      const store = openStore()
      const expected = (hook: string, to: number) => listNumbers(0, to).map((n) => `${hook} ${n}`)
      expect((await readMessages(store, 'github')).toSorted()).toEqual(expected('github', 21).toSorted())
      expect(await readMessages(store, 'gitlab')).toEqual(expected('gitlab', 20))
      expect(await readMessages(store, 'stripe')).toEqual(expected('stripe', 20))
      const records = await store.deliveries({ limit: 500 })
      expect(records.filter(({ recovered }) => !recovered).length).toBeLessThanOrEqual(1)
      await store.close()
      expect([github, gitlab, stripe].map(({ faults }) => faults)).toEqual([[], [], []])

      // a later repetition by the sender is a duplicate of the recovered delivery
      const third = await start(openStore(), dir, clock)
      const again = await redeliver(third.url, twice, { n: 20 })
      expect([again.status, again.headers.get('idempotent-replay')]).toEqual([200, 'true'])
      const answered = await fetch(`${third.adminUrl}/api/deliveries?limit=200&hook=github`, {
        headers: { authorization: `Bearer ${gatewayToken}` },
      })
      const { deliveries } = (await answered.json()) as { deliveries: { recovered: boolean }[] }
      expect(deliveries).toHaveLength(21)
      expect(deliveries.filter(({ recovered }) => recovered).length).toBeGreaterThanOrEqual(20)
      await third.stop()
    })

    test('a turn expires as if its request had arrived when the sender first sent it', async () => {
      const openStore = await open()
      const clock = createClock()
      const { stripe, mappings } = await startSenders(clock)
      const own = mappings.filter(({ id }) => id === 'stripe').map((each) => ({ ...each, flow: { expires: '1h' } }))
      const dir = makeConfigDir({ config: { hooks: { mappings: own } } })
      const first = await start(openStore(), dir, clock)
      await first.printed(/stripe: recover begins now/)
      await first.stop()
      stripe.addEvent({ object: { n: 'old' } })
      clock.advance(120 * minute)
      stripe.addEvent({ object: { n: 'new' } })
      clock.advance(5 * minute)
      const second = await start(openStore(), dir, clock)
      await second.printed(/stripe: 2 of 2 recovered/)
      await second.settled()
      const read = async () => {
        const records = await second.store.deliveries({ limit: 10 })
        return records.flatMap(({ jobs }) =>
          jobs.map(({ planned, state }) => `${planned.kind === 'agent' ? planned.action.message : ''}: ${state}`),
        )
      }
      await expect.poll(read).toEqual(['stripe old: expired', 'stripe new: done'])
      await second.stop()
    })
  })
}
