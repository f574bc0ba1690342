// Watches the sources of the gateway, such as a mailbox. Each watch follows the configuration and the duty of this gateway.
import { sources } from '../../plugins/sources/index.ts'
import {
  type PushGate,
  type SourceDefinition,
  type SourceHost,
  type SourceItem,
  type SourceWatch,
  toSourceCursor,
} from '../../model/source.ts'
import type { Config } from '../../model/config/config.ts'
import type { Delivery } from '../../core/model/delivery.ts'
import type { Generation } from '../generation/generation.ts'
import type { Hook } from '../../core/mapping/hook.ts'
import type { NewDelivery } from '../../store/records.ts'
import type { Duty } from '../../store/named-leases.ts'
import type { Clock, Store } from '../../store/store.ts'
import { createVerifier } from '../proofs/verify.ts'
import { toWaitingAnswer } from './answers.ts'
import { toPendingSettlement, toDeliveryRow } from './settlement.ts'
import { buildDelivery, toLocalHead } from '../../core/mapping/delivery.ts'
import { readDedupe } from './duplicates.ts'
import { createIntake, type IntakeParts } from './intake.ts'
import { type Repeats, toRepeatedDelivery } from './repeats.ts'

type SourcesParts = Omit<InboxParts, 'name' | 'account'> & {
  /** The config directory. */
  readonly dir: string
  /** With `HOOKLOOM_SKIP_GMAIL=1`, the gateway does not watch the mailbox, because `hookloom gmail run` does. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Only the gateway with this duty watches the sources. */
  readonly duty: Duty
  /** Counts pushes without a valid proof for each client. */
  readonly gate: (trustedProxies: readonly string[]) => PushGate
}

type Sources = {
  /** Watches what this configuration names, if this gateway has the duty; otherwise nothing. Does nothing for what is watched already. */
  apply(config: Config): void
  /** What is watched now. */
  accounts(): readonly string[]
  /** The problems of the watches, for /readyz. */
  problems(): { readonly detail: string }[]
  stop(): Promise<void>
}

export function createSources(parts: SourcesParts): Sources {
  const all = sources.map((source) => createWatched(source, parts))
  return {
    apply: (config) => all.forEach((each) => each.apply(config)),
    accounts: () => all.flatMap((each) => each.accounts()),
    problems: () => all.flatMap((each) => each.problems()),
    stop: async () => void (await Promise.all(all.map((each) => each.stop()))),
  }
}

function createWatched(source: SourceDefinition, parts: SourcesParts): Sources {
  const { dir, env, duty, gate, generation, clock, log } = parts
  const { name, label } = source
  let watched = ''
  let running: { readonly account: string; readonly watch: SourceWatch } | undefined
  let isStopping = false
  let last: Promise<void> = Promise.resolve()

  function openHost(account: string, trustedProxies: readonly string[]): SourceHost {
    const verifier: SourceHost['verifier'] = (settings, fetch) =>
      createVerifier(settings, { now: clock, fetch, senders: generation().senders })
    return { ...createInbox({ ...parts, name, account }), dir, gate: gate(trustedProxies), verifier, log, clock }
  }

  async function switchWatch(
    account: string | undefined,
    options: unknown,
    trustedProxies: readonly string[],
  ): Promise<void> {
    await running?.watch.stop()
    running = undefined
    if (account === undefined || isStopping) return
    running = { account, watch: await source.watch(options, openHost(account, trustedProxies)) }
  }

  return {
    apply({ hooks, server: { trustedProxies } }) {
      const isOn = hooks.enabled && env[`HOOKLOOM_SKIP_${name.toUpperCase()}`] !== '1' && duty.isHeld()
      const options: unknown = Reflect.get(hooks, name)
      const account = isOn && options !== undefined ? source.account(options) : undefined
      const wanted = account === undefined ? '' : JSON.stringify([options, trustedProxies])
      if (wanted === watched || isStopping) return
      watched = wanted
      last = last.then(() => switchWatch(account, options, trustedProxies))
    },
    accounts: () => (running === undefined ? [] : [running.account]),
    problems: () => (running?.watch.problems() ?? []).map((problem) => ({ detail: `${label}: ${problem}` })),
    async stop() {
      isStopping = true
      await last
      await running?.watch.stop()
    },
  }
}

type InboxParts = IntakeParts & {
  /** The name of the source, which is also that of its hook. */
  readonly name: string
  readonly account: string
  readonly generation: () => Generation
  readonly store: Pick<Store, 'cursor'>
  readonly repeats: Pick<Repeats, 'note'>
  readonly clock: Clock
  readonly newId: () => string
}

export function createInbox(parts: InboxParts): Pick<SourceHost, 'place' | 'store'> {
  const { name, account, generation, store, repeats, clock, newId } = parts
  const intake = createIntake(parts)
  const cursor = toSourceCursor(name, account)
  /** The value of the cursor when it was last read or moved here. */
  let place: string | undefined

  return {
    async place() {
      place = await store.cursor(cursor)
      return place
    },
    async store(items, to) {
      const current = generation()
      const built = items.map((item) =>
        buildRequest(item, { name, generation: current, id: newId(), receivedAt: clock() }),
      )
      const appended = await intake.storeAndRun(
        built.map(({ row }) => row),
        { name: cursor, from: place, to },
      )
      // not a Problem: the sync begins again at the new cursor
      if (appended === 'moved')
        throw new Error('Another process moved the position in the mailbox. The next sync begins there.')
      for (const [index, { delivery, hook }] of built.entries()) {
        const what = appended[index]
        if (what?.kind === 'duplicate') repeats.note(toRepeatedDelivery(delivery, hook, what.first))
      }
      place = to
    },
  }
}

/** Makes a pending delivery of an item. Its key is the same as over HTTP, so an item that comes both ways is one delivery. */
function buildRequest(
  { key, payload }: SourceItem,
  from: { name: string; generation: Generation; id: string; receivedAt: number },
): { delivery: Delivery; hook: Hook; row: NewDelivery } {
  const { name, generation, id, receivedAt } = from
  const hook = generation.findHook(name)
  const prefix = generation.config.hooks.path
  const headers = { 'content-type': 'application/json', 'idempotency-key': key }
  const head = toLocalHead(hook, { prefix, path: name, headers })
  const body = Buffer.from(JSON.stringify(payload))
  // the gateway fetched the item itself, so there is no signature
  const admitted = { token: true, signedFor: [] }
  const delivery = buildDelivery({ ...head, admitted }, body, { hook, id, receivedAt })
  const settlement = toPendingSettlement(delivery, generation.id)
  const answer = toWaitingAnswer(id, 'pending')
  return { delivery, hook, row: toDeliveryRow(delivery, { settlement, answer, dedupe: readDedupe(delivery)?.key }) }
}
