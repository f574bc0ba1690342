// The gateway is off for an hour, while three senders try 1,000 deliveries each. After the start, none is missing and none ran twice.
// During the recovery, gateways are killed, senders repeat some deliveries, and on Postgres two gateways recover at once.
import { createHmac } from 'node:crypto'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { count } from '../counts.ts'
import { githubToken, startGitHub } from '../e2e/fakes/github-deliveries.ts'
import { gitlabToken, startGitLab } from '../e2e/fakes/gitlab-events.ts'
import { startStripe, stripeKey } from '../e2e/fakes/stripe-events.ts'
import { type Gateway, gatewayToken, makeConfigDir, startGateway } from '../e2e/gateway.ts'
import type { StorePlace } from '../../src/model/places.ts'
import { openReader } from '../../src/store/open.ts'
import type { StoreReader } from '../../src/store/store.ts'

const perSender = 1_000
const senders = ['github', 'gitlab', 'stripe'] as const
const secrets = { github: 'github-secret-of-it', gitlab: 'gitlab-secret-of-it', stripe: 'whsec_stripe-secret' }
const hour = 3_600_000
const slow = { timeout: 120_000, interval: 50 }

/** The clock of the senders and the gateways. The test can move it forward by an hour. */
function createSharedClock() {
  let skipped = 0
  const nodeArgs = () => [
    '--import',
    `data:text/javascript,const real = Date.now; Date.now = () => real() + ${skipped}`,
  ]
  return Object.assign(() => Date.now() + skipped, { skip: (ms: number) => void (skipped += ms), nodeArgs })
}

type SharedClock = ReturnType<typeof createSharedClock>

async function startSenders(clock: SharedClock) {
  const github = await startGitHub({ clock })
  const gitlab = await startGitLab({ clock })
  const stripe = await startStripe({ clock })
  const buildMapping = (scheme: string, recover: { sender: (typeof senders)[number] }, textTemplate: string) => ({
    id: recover.sender,
    match: { path: recover.sender },
    verify: { scheme, secret: secrets[recover.sender] },
    action: 'wake',
    textTemplate,
    recover,
  })
  const recover = {
    github: { sender: 'github', repository: 'acme/app', hookId: 77, token: githubToken, baseUrl: github.url },
    gitlab: { sender: 'gitlab', project: 'acme/app', hookId: 5, token: gitlabToken, baseUrl: `${gitlab.url}/api/v4` },
    stripe: { sender: 'stripe', hookId: 'we_1', token: stripeKey, baseUrl: stripe.url },
  } as const
  const mappings = [
    buildMapping('github', recover.github, 'github {{n}}'),
    buildMapping('gitlab-token', recover.gitlab, 'gitlab {{n}}'),
    buildMapping('stripe', recover.stripe, 'stripe {{data.object.n}}'),
  ]
  /** The attempts of the senders while no gateway runs. Some deliveries are tried twice, as GitLab or an operator of GitHub does. */
  const tryAll = (): { guids: readonly string[] } => {
    const guids: string[] = []
    for (let n = 0; n < perSender; n += 1) {
      clock.skip(hour / perSender)
      const guid = github.addAttempt({ payload: { n } })
      guids.push(guid)
      const key = gitlab.addAttempt({ payload: { n } })
      stripe.addEvent({ object: { n } })
      if (n % 50 === 7) github.addAttempt({ guid, payload: { n }, redelivery: true })
      if (n % 50 === 9) gitlab.addAttempt({ key, payload: { n } })
    }
    return { guids }
  }
  return { github, gitlab, stripe, mappings, tryAll }
}

/** Repeats a delivery of GitHub and an event of Stripe while the gateway recovers them. Returns whether both were accepted. */
async function repeatSome(
  { url }: Gateway,
  { guid, n, event, now }: { guid: string; n: number; event: string; now: number },
): Promise<boolean> {
  const body = JSON.stringify({ n })
  const at = Math.floor(now / 1_000)
  const sign = (secret: string, text: string) => createHmac('sha256', secret).update(text).digest('hex')
  const send = (hook: string, text: string, headers: Readonly<Record<string, string>>) =>
    fetch(`${url}/${hook}`, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: text })
  const answers = await Promise.all([
    send('github', body, {
      'x-github-event': 'push',
      'x-github-delivery': guid,
      'x-hub-signature-256': `sha256=${sign(secrets.github, body)}`,
    }),
    send('stripe', event, { 'stripe-signature': `t=${at},v1=${sign(secrets.stripe, `${at}.${event}`)}` }),
  ])
  return answers.every(({ status }) => status === 200)
}

async function askToRecover({ adminUrl }: Gateway): Promise<string> {
  const headers = { authorization: `Bearer ${gatewayToken}` }
  const answer = await fetch(`${adminUrl}/api/recover`, { method: 'POST', headers }).catch(() => undefined)
  return (await answer?.text().catch(() => '')) ?? ''
}

/** Returns how many deliveries of each sender ran, and how many of them are different. */
async function passHour(count: number, store: object | undefined, toPlace: (dir: string) => StorePlace) {
  const clock = createSharedClock()
  const { github, gitlab, stripe, mappings, tryAll } = await startSenders(clock)
  const config = { hooks: { mappings }, ...(store && { store }) }
  const dirs = Array.from({ length: count }, () => makeConfigDir({ config }))
  const startAll = () => Promise.all(dirs.map((dir) => startGateway({ dir, nodeArgs: clock.nodeArgs() })))
  const place = toPlace(dirs[0] ?? '')

  let gateways = await startAll()
  const readOutput = () => gateways.map((gateway) => gateway.output()).join('\n')
  for (const sender of senders) await expect.poll(readOutput, slow).toMatch(new RegExp(`${sender}: recover begins now`))
  for (const gateway of gateways) expect(await gateway.stop()).toBe(0)

  const { guids } = tryAll()
  // the newest attempts of GitHub and Stripe may count as still running for a minute
  clock.skip(120_000)
  const withReader = async <T>(read: (opened: StoreReader) => Promise<T>): Promise<T> => {
    const opened = await openReader(place)
    try {
      return await read(opened)
    } finally {
      await opened.close()
    }
  }
  const countEvents = () => withReader(async (opened) => (await opened.events({ limit: 10_000 })).length)

  // each kill comes before all deliveries are recovered
  for (const [enough, n] of [
    [500, 700],
    [1_900, 900],
  ] as const) {
    gateways = await startAll()
    const asked = gateways.map((gateway) => askToRecover(gateway))
    await expect.poll(countEvents, slow).toBeGreaterThan(enough)
    const event = stripe.buildBody(`evt_${n}`)
    expect(await repeatSome(gateways.at(-1) as Gateway, { guid: guids[n] ?? '', n, event, now: clock() })).toBe(true)
    await Promise.all(gateways.map((gateway) => gateway.kill()))
    await Promise.all(asked)
    expect(await countEvents()).toBeLessThan(senders.length * perSender)
  }
  gateways = await startAll()
  await expect.poll(countEvents, slow).toBe(senders.length * perSender)
  // all stored deliveries have run, and another pass finds nothing
  await expect.poll(() => withReader((opened) => opened.countInState('pending')), slow).toBe(0)
  for (const gateway of gateways)
    await expect
      .poll(async () => {
        const text = await askToRecover(gateway)
        return [...text.matchAll(/"missing":(\d+),"recovered":(\d+).*?"problem":(null|"[^"]*")/g)].map(([all]) => all)
      }, slow)
      .toEqual(senders.map(() => expect.stringMatching(/^"missing":0,"recovered":0.*"problem":null$/)))
  for (const gateway of gateways) await gateway.stop()

  const texts = await withReader(async (opened) => (await opened.events({ limit: 10_000 })).map(({ text }) => text))
  expect([github, gitlab, stripe].map(({ faults }) => faults)).toEqual([[], [], []])
  return senders.map((sender) => {
    const ran = texts.filter((text) => text.includes(sender)).map((text) => Number(/(\d+)$/.exec(text)?.[1]))
    return { sender, ran: ran.length, different: new Set(ran).size }
  })
}

const eachOnce = senders.map((sender) => ({ sender, ran: perSender, different: perSender }))

describe('an hour without a gateway, while GitHub, GitLab and Stripe try 1,000 deliveries each', () => {
  test(
    'on SQLite, each of 3,000 missed deliveries runs exactly once, despite two kills during the recovery',
    { timeout: 600_000 },
    async (context) => {
      const ran = await passHour(1, undefined, (dir) => ({ kind: 'file', file: join(dir, 'state/hookloom.db') }))
      expect(ran).toEqual(eachOnce)
      count(context, { 'missed deliveries': perSender * senders.length, lost: 0, twice: 0, kills: 2 })
    },
  )

  test.skipIf(whyNoPostgres !== undefined)(
    'on Postgres, each of 3,000 missed deliveries runs exactly once, although two gateways recover at once and are killed',
    { timeout: 600_000 },
    async (context) => {
      const { url, drop } = await newSchema()
      expect(await passHour(2, { url }, () => ({ kind: 'url', url }))).toEqual(eachOnce)
      count(context, { 'missed deliveries': perSender * senders.length, lost: 0, twice: 0 })
      await drop()
    },
  )
})
