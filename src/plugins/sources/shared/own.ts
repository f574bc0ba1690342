// Sources in the code of integrators. An exception and an invalid value are failures of the source, whose messages name the plugin and no secret.
import { z } from 'zod'
import { type Log, silentLog } from '../../../base/log.ts'
import { sleepUnlessAborted } from '../../../base/retry.ts'
import { cut, toPrintableLine } from '../../../base/text.ts'
import { guardProbe } from '../../../model/channel.ts'
import {
  type OwnSource,
  type PassingParts,
  type SourceDefinition,
  SourceFailure,
  type SourceHost,
  type SourceItem,
  type SourceParts,
} from '../../../model/source.ts'
import { SourceFile } from '../../../model/source-files.ts'
import { createLimitedFetch } from './fetch.ts'

const maxChars = 500
const minEveryMs = 1_000
const maxPlaceBytes = 65_536

const line = z.string().transform((text) => cut(toPrintableLine(text), maxChars))
const Failure = z.object({ problem: line, retryAfterMs: z.number().nonnegative().optional() })
const Items = z.array(
  z.object({
    key: z.string().trim().min(1).max(256),
    payload: z.looseObject({}),
    files: z.array(SourceFile).max(1_000).optional(),
  }),
)
const Place = z.string().refine((place) => Buffer.byteLength(place) <= maxPlaceBytes)

type SoundSource = Extract<OwnSource, { kind: 'sound' }>

export type SourceLimits = {
  /** Masks the secrets of the configuration. */
  readonly hide: (text: string) => string
  /** The bytes that an item may have: the limit of its hook. */
  readonly maxBodyBytes: () => number
}

/** The definition of a section whose code throws nothing but a `SourceFailure`. */
export function limitSource(own: SoundSource, { hide, maxBodyBytes }: SourceLimits): SourceDefinition {
  const { label, definition, describeThrown } = own
  const describe = (what: string) => `The source ${label} ${what}`
  const describeException = (thrown: unknown) => describe(`threw ${describeThrown(thrown)}.`)
  const hideAll = (text: string) => hide(cut(toPrintableLine(text), maxChars))

  function toFailure(thrown: unknown): SourceFailure {
    if (!(thrown instanceof SourceFailure)) return new SourceFailure(describeException(thrown), { cause: thrown })
    return new SourceFailure(hideAll(thrown.message), { retryAfterMs: thrown.retryAfterMs })
  }

  function limit<Result>(call: () => Result): Result {
    try {
      return call()
    } catch (thrown) {
      throw toFailure(thrown)
    }
  }

  function checkItems(items: readonly SourceItem[], place: string): void {
    const parsed = Items.safeParse(items)
    if (!parsed.success || !Place.safeParse(place).success)
      throw new SourceFailure(
        describe(
          'stored no items: store takes [{ key, payload }] with a key of 1 to 256 characters and an object, perhaps files of { name, ref }, and then the place, a text of at most 64 KiB.',
        ),
      )
    const most = maxBodyBytes()
    const over = items.find(({ payload }) => Buffer.byteLength(JSON.stringify(payload)) > most)
    if (over === undefined) return
    const next = `Raise maxBodyBytes of its mapping, or let the source send less.`
    throw new SourceFailure(
      describe(`has the item "${hideAll(over.key)}" of over ${most} bytes, the limit of its hook. ${next}`),
    )
  }

  return {
    ...definition,
    account(options) {
      const account = limit(() => definition.account(options))
      if (account === undefined || (typeof account === 'string' && account !== '')) return account
      throw new SourceFailure(describe('must return a text, or undefined, from account.'))
    },
    create(options, host) {
      const parts = limit(() =>
        definition.create(options, {
          ...host,
          log: maskLog(host.log, hideAll),
          place: () => host.place().catch(rethrowOfHost),
          receive: (request) => host.receive(request).catch(rethrowOfHost),
          async store(items, place) {
            checkItems(items, place)
            await host.store(items, place).catch(rethrowOfHost)
          },
        }),
      )
      if (typeof parts?.pass !== 'function')
        throw new SourceFailure(describe('made nothing that runs: create returns { pass }.'))
      return limitParts(parts)
    },
  }

  function limitParts(parts: SourceParts): SourceParts {
    return {
      ...limitPasses(parts, { describe, toFailure, describeException, hide }),
      ...guardProbe(parts, { describe, describeException }),
      ...(parts.readFiles && { readFiles: (refs, limits) => limitFiles(parts, refs, limits) }),
    }
  }

  async function* limitFiles(
    parts: SourceParts,
    ...[refs, limits]: Parameters<NonNullable<SourceParts['readFiles']>>
  ): AsyncGenerator<Uint8Array | undefined> {
    try {
      for await (const file of parts.readFiles?.(refs, limits) ?? []) {
        if (file !== undefined && !(file instanceof Uint8Array))
          throw new SourceFailure(describe('must yield a Uint8Array, or undefined, from readFiles.'))
        yield file
      }
    } catch (thrown) {
      throw toFailure(thrown)
    }
  }
}

type PassTexts = {
  readonly describe: (what: string) => string
  readonly describeException: (thrown: unknown) => string
  readonly toFailure: (thrown: unknown) => SourceFailure
  readonly hide: (text: string) => string
}

/** Passes that throw nothing but a `SourceFailure`, with valid results. */
export function limitPasses(
  parts: PassingParts,
  { describe, describeException, toFailure, hide }: PassTexts,
): PassingParts {
  return {
    ...(typeof parts.everyMs === 'number' && { everyMs: Math.max(minEveryMs, parts.everyMs) }),
    async pass(signal) {
      let result: unknown
      try {
        result = await parts.pass(signal)
      } catch (thrown) {
        throw toFailure(thrown)
      }
      if (result === undefined) return
      const { data } = Failure.safeParse(result)
      if (data === undefined)
        throw new SourceFailure(describe('returned from pass neither nothing nor { problem: "a sentence" }.'))
      return { ...data, problem: hide(data.problem) }
    },
    problems() {
      try {
        return z
          .array(line)
          .parse(parts.problems?.() ?? [])
          .map(hide)
      } catch (thrown) {
        return [describeException(thrown)]
      }
    },
  }
}

/** What `hookloom doctor` asks: the source of a section, which fetches and stores nothing. */
export function probeSource(
  own: OwnSource,
  { dir, hide }: { readonly dir: string; readonly hide: (text: string) => string },
): Pick<SourceParts, 'probe'> {
  if (own.kind === 'broken') return { probe: async () => ({ ok: false, detail: own.problem.detail }) }
  const host = createAsideHost({ dir, signal: new AbortController().signal, clock: Date.now })
  try {
    return limitSource(own, { hide, maxBodyBytes: () => 0 }).create(own.options, host)
  } catch (thrown) {
    const detail = thrown instanceof SourceFailure ? thrown.message : 'It failed.'
    return { probe: async () => ({ ok: false, detail }) }
  }
}

/** The host of a source that runs no pass. `signal`: ends its requests. */
export function createAsideHost({
  dir,
  signal,
  clock,
}: Pick<SourceHost, 'dir' | 'clock'> & { readonly signal: AbortSignal }): SourceHost {
  const refuse = (): never => {
    throw new SourceFailure('It runs no pass here, so it stores nothing.')
  }
  return {
    dir,
    place: async () => refuse(),
    store: async () => refuse(),
    receive: async () => refuse(),
    fetch: createLimitedFetch(signal),
    signal,
    pause: sleepUnlessAborted,
    verifier: refuse,
    gate: { clientOf: refuse, readLockSeconds: refuse, fail: refuse },
    log: silentLog,
    clock,
  }
}

/** The code of the plugin is not to blame for a store that fails. */
function rethrowOfHost(thrown: unknown): never {
  if (thrown instanceof SourceFailure) throw thrown
  throw new SourceFailure(thrown instanceof Error ? thrown.message : 'The store failed.', { cause: thrown })
}

/** A log whose lines have no secret of the configuration. */
export function maskLog(log: Log, hide: (text: string) => string): Log {
  const maskFields = (fields: object) =>
    Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [name, typeof value === 'number' ? value : hide(String(value))]),
    )
  const from =
    (level: keyof Log) =>
    (fields: object, message: string): void =>
      log[level](maskFields(fields), hide(message))
  return { debug: from('debug'), info: from('info'), warn: from('warn'), error: from('error') }
}
