// What never reaches an agent, or the next service, of the webhooks that their receiver has acknowledged, after kills. Others are installed as the
// bench installs them; without them, their cases are skipped.
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { findPeer, findRequest, type PeerKind, startPeer } from '../bench/peers.ts'
import { count } from '../counts.ts'
import { startLoopback } from '../e2e/fakes/loopback.ts'
import { hookToken, makeFolder, startGateway } from '../e2e/gateway.ts'

const kills = 3
const connections = 8
/** How long a turn takes: at each kill, some are under way. */
const turnMs = 200
/** Between two requests of a connection. */
const pauseMs = 300
/** Without an effect for so long, the rest counts as lost. */
const quietMs = 30_000

type Receiver = { readonly url: string; kill(): Promise<void> }
type Place = { readonly dir: string; readonly effect: string }

/** A model that streams, and a service that takes a post. `reached`: the ids of which a request was answered to its end. */
async function startEffect() {
  const reached: string[] = []
  const { url } = await startLoopback(async ({ text }) => {
    const id = Array.from(text.matchAll(/marker-(\d+)-end/g), ([, found = '']) => found).at(-1)
    await pause(turnMs)
    return (response) => {
      if (response.destroyed) return
      response.on('finish', () => id !== undefined && reached.push(id))
      if (!text.includes('"stream":true')) return void response.end('{}')
      const choice = { index: 0, delta: { role: 'assistant', content: `Low water ${id}.` }, finish_reason: 'stop' }
      const usage = { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 }
      const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [choice], usage }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`)
    }
  })
  return { url: `${url}/v1`, reached }
}

async function startHookloom({ dir, effect }: Place): Promise<Receiver> {
  const message = '{{action}} #{{issue.number}} {{issue.title}} by {{sender.login}}: {{issue.html_url}}'
  const config = {
    models: { providers: { bench: { kind: 'openai-compatible', baseUrl: effect } } },
    agents: { defaults: { model: 'bench/m' } },
    hooks: { mappings: [{ match: { path: 'bench' }, messageTemplate: message, deliver: false }] },
  }
  const gateway = await startGateway({ dir, config })
  return { url: `${gateway.url}/bench`, kill: gateway.kill }
}

const startOther =
  (kind: PeerKind) =>
  async ({ dir, effect }: Place): Promise<Receiver> => {
    const { port, stop } = await startPeer(kind, { dir, token: hookToken, effect })
    return { url: `http://127.0.0.1:${port}${findRequest(kind).path}`, kill: async () => stop() }
  }

/** `keeps`: whether its documentation says that what it acknowledged runs after a crash. */
const receivers: readonly { name: string; keeps: boolean; start?: (place: Place) => Promise<Receiver> }[] = [
  { name: 'Hookloom', keeps: true, start: startHookloom },
  ...(
    [
      ['OpenClaw', 'openclaw', false],
      ['Node-RED', 'node-red', false],
      ['Restate', 'restate', true],
    ] as const
  ).map(([name, kind, keeps]) => ({
    name,
    keeps,
    ...(findPeer(kind) === undefined ? {} : { start: startOther(kind) }),
  })),
]

test.for(receivers)(
  `what ${kills} kills of $name keep from their effect is counted`,
  { timeout: 900_000 },
  async ({ keeps, start }, context) => {
    if (start === undefined) return context.skip('it is not installed')
    const { url: effect, reached } = await startEffect()
    const place = { dir: makeFolder(), effect }
    const acknowledged: string[] = []
    let sent = 0
    const post = async (to: string) => {
      const id = String((sent += 1))
      const issue = { number: sent, title: `marker-${id}-end`, html_url: 'https://forge.example/1' }
      const answer = await fetch(to, {
        method: 'POST',
        headers: { authorization: `Bearer ${hookToken}`, 'content-type': 'application/json' },
        body: JSON.stringify({ action: 'opened', issue, sender: { login: 'bench' } }),
      }).catch(() => undefined)
      if (answer?.ok === true) acknowledged.push(id)
      await answer?.text().catch(() => '')
      return answer !== undefined
    }
    for (let kill = 0; kill < kills; kill += 1) {
      const receiver = await start(place)
      const loading = new AbortController()
      const lanes = Array.from({ length: connections }, async () => {
        while (!loading.signal.aborted && (await post(receiver.url))) await pause(pauseMs)
      })
      await pause(8_000 + 1_000 * kill)
      await receiver.kill()
      loading.abort()
      await Promise.all(lanes)
    }
    const last = await start(place)
    const missing = () => {
      const there = new Set(reached)
      return acknowledged.filter((id) => !there.has(id))
    }
    for (let [before, quiet] = [-1, 0]; missing().length > 0 && quiet < quietMs; quiet += 500) {
      if (reached.length !== before) quiet = 0
      before = reached.length
      await pause(500)
    }
    await last.kill()
    const lost = missing().length
    const who = keeps ? '' : ' by others'
    count(context, { acknowledged: acknowledged.length, [`lost${who}`]: lost, kills })
    expect(acknowledged.length).toBeGreaterThan(kills)
    if (keeps) expect(lost).toBe(0)
  },
)
