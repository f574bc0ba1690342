// Watches the sources of the gateway, such as a mailbox. Each watch follows the configuration and the duty of this gateway.
import { sleepUnlessAborted } from '../../base/retry.ts'
import { createLimitedFetch } from '../../plugins/sources/shared/fetch.ts'
import { listWithSection } from '../../plugins/sources/index.ts'
import { limitSource } from '../../plugins/sources/shared/own.ts'
import { createSecretMask, listConfigSecrets } from '../../model/config/secrets.ts'
import { toItemFiles } from '../../model/source-files.ts'
import {
  type OwnSource,
  type PushGate,
  type SourceDefinition,
  SourceFailure,
  type SourceHost,
  type SourceItem,
  type SourceParts,
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
import { type Passes, type PassTools, startPasses } from './passes.ts'
import { type Repeats, toRepeatedDelivery } from './repeats.ts'

type SourcesParts = Omit<InboxParts, 'name' | 'account'> & {
  /** The config directory. */
  readonly dir: string
  /** With `HOOKLOOM_SKIP_GMAIL=1`, the gateway does not watch the mailbox, because `hookloom gmail run` does. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** The sections of `sources`. */
  readonly own: () => readonly OwnSource[]
  /** Only the gateway with this duty watches the sources. */
  readonly duty: Duty
  /** Counts pushes without a valid proof for each client. */
  readonly gate: (trustedProxies: readonly string[]) => PushGate
  /** Puts a request that arrived elsewhere through the pipe of the hook port. */
  readonly receive: SourceHost['receive']
}

type Sources = {
  /** Watches what this configuration names, if this gateway has the duty; otherwise nothing. Does nothing for what is watched already. */
  apply(config: Config): void
  /** What is watched here, with its problems. */
  list(): WatchedSource[]
  stop(): Promise<void>
}

/** A source that this gateway watches. `account`: undefined before its first pass. `problems`: one sentence each. */
export type WatchedSource = {
  readonly label: string
  readonly account: string | undefined
  readonly lastGoodAt: number | undefined
  readonly problems: readonly string[]
}

/** A source with the section that it has in a configuration. `stamp`: another one means that it starts again. */
type Wanted = {
  readonly name: string
  readonly label: string
  readonly definition: SourceDefinition
  readonly options: unknown
  readonly stamp: string
}

export function createSources(parts: SourcesParts): Sources {
  const { env, own, duty, generation } = parts
  const watched = new Map<string, Watched>()
  let isStopping = false

  function listWanted(config: Config): Wanted[] {
    if (!config.hooks.enabled || !duty.isHeld()) return []
    const builtIn = listWithSection(config.hooks).flatMap(({ definition, options }): Wanted[] => {
      const { name, label = name } = definition
      if (env[`HOOKLOOM_SKIP_${name.toUpperCase()}`] === '1') return []
      return [{ name, label, definition, options, stamp: JSON.stringify(options) }]
    })
    const sections = own()
    const hide = sections.length === 0 ? String : createSecretMask(listConfigSecrets(config, []), '***')
    const ofPlugins = sections.flatMap((section): Wanted[] => {
      if (section.kind === 'broken') return []
      const { name, options, hash } = section
      const maxBodyBytes = () => generation().findHook(name).maxBodyBytes
      const definition = limitSource(section, { hide, maxBodyBytes })
      const { label = `sources.${name}` } = definition
      return [{ name, label, definition, options, stamp: JSON.stringify([hash, config.sources[name]]) }]
    })
    return [...builtIn, ...ofPlugins]
  }

  return {
    apply(config) {
      if (isStopping) return
      const all = listWanted(config)
      for (const { name } of all) if (!watched.has(name)) watched.set(name, createWatched(parts))
      for (const [name, each] of watched) {
        each.apply(
          all.find((wanted) => wanted.name === name),
          config.server.trustedProxies,
        )
      }
    },
    list: () => [...watched.values()].flatMap((each) => each.read() ?? []),
    async stop() {
      isStopping = true
      await Promise.all([...watched.values()].map((each) => each.stop()))
    },
  }
}

type Watched = {
  apply(wanted: Wanted | undefined, trustedProxies: readonly string[]): void
  read(): WatchedSource | undefined
  stop(): Promise<void>
}

/** Without an account, nothing is watched. */
const nothing: SourceParts = { pass: async () => {}, everyMs: 86_400_000 }

/** What is watched under one name, at most one source at a time. */
function createWatched(parts: SourcesParts): Watched {
  const { dir, gate, receive, generation, clock, log } = parts
  let stamp = ''
  let running:
    | { readonly label: string; readonly account: () => string | undefined; readonly passes: Passes }
    | undefined
  let last: Promise<void> = Promise.resolve()

  function openHost(name: string, account: string, trustedProxies: readonly string[], tools: PassTools): SourceHost {
    const inbox = createInbox({ ...parts, name, account })
    const verifier: SourceHost['verifier'] = (settings, fetch) =>
      createVerifier(settings, { now: clock, fetch, senders: generation().senders })
    return {
      dir,
      place: inbox.place,
      async store(items, place) {
        // another gateway, or a newer version of the code, may watch already
        if (tools.isOver()) throw new SourceFailure('The source was stopped, so it stores nothing more.')
        await inbox.store(items, place)
        tools.onStored()
      },
      receive,
      fetch: createLimitedFetch(tools.signal),
      signal: tools.signal,
      pause: sleepUnlessAborted,
      verifier,
      gate: gate(trustedProxies),
      log,
      clock,
    }
  }

  async function switchTo(wanted: Wanted | undefined, trustedProxies: readonly string[]): Promise<void> {
    await running?.passes.stop()
    running = undefined
    if (wanted === undefined) return
    const { name, label, definition, options } = wanted
    let account: string | undefined
    const passes = startPasses({
      open(tools) {
        account = definition.account(options)
        if (account === undefined) return nothing
        return definition.create(options, openHost(name, account, trustedProxies, tools))
      },
      fields: { source: name },
      label,
      log,
      clock,
    })
    running = { label, account: () => account, passes }
  }

  function change(wanted: Wanted | undefined, trustedProxies: readonly string[]): Promise<void> {
    last = last.then(() => switchTo(wanted, trustedProxies))
    return last
  }

  return {
    apply(wanted, trustedProxies) {
      const next = wanted === undefined ? '' : JSON.stringify([wanted.stamp, trustedProxies])
      if (next === stamp) return
      stamp = next
      void change(wanted, trustedProxies)
    },
    read() {
      if (running === undefined) return undefined
      const { label, account, passes } = running
      return { label, account: account(), lastGoodAt: passes.lastGoodAt(), problems: passes.problems() }
    },
    stop: () => change(undefined, []),
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
        buildRequest(item, { name, account, generation: current, id: newId(), receivedAt: clock() }),
      )
      const appended = await intake.storeAndRun(
        built.map(({ row }) => row),
        { name: cursor, from: place, to },
      )
      if (appended === 'moved')
        throw new SourceFailure('Another process moved the place in the source. The next pass begins there.')
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
  { key, payload, files = [] }: SourceItem,
  from: { name: string; account: string; generation: Generation; id: string; receivedAt: number },
): { delivery: Delivery; hook: Hook; row: NewDelivery } {
  const { name, account, generation, id, receivedAt } = from
  const hook = generation.findHook(name)
  const prefix = generation.config.hooks.path
  const headers = { 'content-type': 'application/json', 'idempotency-key': key }
  const head = toLocalHead(hook, { prefix, path: name, headers })
  const body = Buffer.from(JSON.stringify(payload))
  // the gateway fetched the item itself, so there is no signature
  const admitted = { token: true, signedFor: [], files: toItemFiles(files, { source: name, account }) }
  const delivery = buildDelivery({ ...head, admitted }, body, { hook, id, receivedAt })
  const settlement = toPendingSettlement(delivery, generation.id)
  const answer = toWaitingAnswer(id, 'pending')
  return { delivery, hook, row: toDeliveryRow(delivery, { settlement, answer, dedupe: readDedupe(delivery)?.key }) }
}
