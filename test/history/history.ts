// Records what clients asked and what the world saw, line by line, so that check.ts can judge it.
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { expect } from 'vitest'
import { startLoopback } from '../e2e/fakes/loopback.ts'
import { runBuilt } from '../e2e/command.ts'
import { seed } from '../seed.ts'
import { checkFile, type Entry, type Verdict } from './check.ts'

/** Ends one attempt. `answer`: what came; undefined if no whole answer came. */
type EndAttempt = (answer: Answer | undefined) => void
type Answer = { readonly status: number; readonly deliveryId: string; readonly runId: string }

export type History = {
  readonly file: string
  /** Writes that a client begins an attempt to send the request with this key. */
  invoke(key: string, lane?: string): EndAttempt
  effect(key: string, where: string): void
  listed(delivery: string): void
  /** The acknowledged deliveries: the key of each, and its run. */
  readonly acknowledged: ReadonlyMap<string, { readonly key: string; readonly run: string }>
  /** Asks for a run as a client, and writes what it sees. Resolves with its state. An answer other than 200 and 404 shows nothing. */
  look(run: string, ask: (run: string) => Promise<Response>): Promise<string | undefined>
  /** Lets a part fail, and writes when that began and when it was over. */
  during<Result>(what: string, act: () => Promise<Result>): Promise<Result>
  /** The verdict of the checker. Throws if it found a fault. */
  judge(): Verdict
}

const folder = '.accept/histories'
/** The most that a command shows at once. */
const maxRows = 10_000

/** The file stays, with the seed in its name. */
export function createHistory(name: string): History {
  const file = `${folder}/${name}-${seed}.jsonl`
  mkdirSync(folder, { recursive: true })
  writeFileSync(file, '')
  const note = (entry: Entry) => appendFileSync(file, `${JSON.stringify(entry)}\n`)
  const acknowledged = new Map<string, { key: string; run: string }>()
  let ops = 0
  let looks = 0
  return {
    file,
    acknowledged,
    invoke(key, lane) {
      const op = (ops += 1)
      note({ do: 'invoke', op, key, ...(lane === undefined ? {} : { lane }) })
      return (answer) => {
        if (answer === undefined) return note({ do: 'unknown', op, why: 'no answer' })
        const { status, deliveryId, runId } = answer
        // a commit whose answer was lost is also a 503
        if (status !== 200) return note({ do: status >= 500 ? 'unknown' : 'fail', op, why: String(status) })
        note({ do: 'ok', op, delivery: deliveryId, run: runId })
        acknowledged.set(deliveryId, { key, run: runId })
      }
    },
    effect: (key, where) => note({ do: 'effect', key, where }),
    listed: (delivery) => note({ do: 'listed', delivery }),
    async look(run, ask) {
      const look = (looks += 1)
      note({ do: 'look', look, run })
      const answer = await ask(run).catch(() => undefined)
      const text = (await answer?.text().catch(() => undefined)) ?? ''
      if (answer?.status === 404) note({ do: 'missing', look })
      const state = answer?.status === 200 ? /"state":"([^"]+)"/.exec(text)?.[1] : undefined
      if (state !== undefined) note({ do: 'seen', look, state })
      return state
    },
    async during(what, act) {
      note({ do: 'fault', what })
      try {
        return await act()
      } finally {
        note({ do: 'fault', what: `${what}, over` })
      }
    },
    judge() {
      const verdict = checkFile(file)
      expect(verdict.faults.slice(0, 20), `The history is in ${file}.`).toEqual([])
      return verdict
    },
  }
}

/** The key of a delivery of the load, in the text of its turn. */
export const deliveryKey = /delivery-\d+\./g

/**
 * A model on loopback, which writes an effect for each key in the last message of a prompt: what the turn is about. `key`: a global pattern. Its reply has
 * no key. Returns the configuration of agents that ask it.
 */
export async function startWitness(history: History, key: RegExp) {
  const { url } = await startLoopback(({ body }) => {
    // as: what the runner sends is a request of chat completions
    const { messages = [] } = body as { messages?: { role: string; content: unknown }[] }
    const asked = JSON.stringify(messages.findLast(({ role }) => role === 'user')?.content ?? '')
    for (const found of new Set(asked.match(key))) history.effect(found, 'model')
    const message = { role: 'assistant', content: 'Seen.' }
    const usage = { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 }
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    return { status: 200, body: { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage } }
  })
  return {
    models: { providers: { witness: { kind: 'openai-compatible', baseUrl: `${url}/v1`, stream: false } } },
    agents: { defaults: { model: 'witness/m' } },
  }
}

/** Writes what the commands list when all work is done, and looks at each acknowledged run. An event shows its delivery: told twice is done twice. */
export async function recordStored(
  history: History,
  { ask, ...place }: { ask: (run: string) => Promise<Response>; dir: string; env?: Record<string, string> },
): Promise<void> {
  const readPage = async (what: string, before: readonly string[]) => {
    const { code, json } = await runBuilt([what, '--json', '--limit', String(maxRows), ...before], place)
    expect(code).toBe(0)
    return json()
  }
  /** All rows, page by page. `field` of the oldest row of a page says where the next page begins. */
  const list = async (what: string, field: string) => {
    const ids: string[] = []
    for (let page = await readPage(what, []); page.length > 0;) {
      ids.push(...page.map(({ deliveryId }) => String(deliveryId)))
      page = await readPage(what, ['--before', String(page[0]?.[field])])
    }
    return ids
  }
  for (const id of await list('list', 'deliveryId')) history.listed(id)
  for (const id of await list('events', 'at')) {
    const { key } = history.acknowledged.get(id) ?? {}
    if (key !== undefined) history.effect(key, 'events')
  }
  for (const { run } of history.acknowledged.values()) if (run !== '') await history.look(run, ask)
}
