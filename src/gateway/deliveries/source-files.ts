// Reads the files of items for their runs. A run may be on a gateway that does not watch the source, so the source is made for this alone, once for all runs.
import { listWithSection } from '../../plugins/sources/index.ts'
import { createAsideHost, limitSource } from '../../plugins/sources/shared/own.ts'
import { createSecretMask, listConfigSecrets } from '../../model/config/secrets.ts'
import type { ReadSourceFiles } from '../../model/source-files.ts'
import { type OwnSource, type SourceDefinition, SourceFailure, type SourceParts } from '../../model/source.ts'
import type { Generation } from '../generation/generation.ts'
import type { Clock } from '../../store/store.ts'

type ReaderParts = {
  /** The config directory. */
  readonly dir: string
  readonly generation: () => Generation
  /** The sections of `sources`. */
  readonly own: () => readonly OwnSource[]
  readonly clock: Clock
}

type SourceReader = { readonly read: ReadSourceFiles; stop(): void }

/** A source with its section. `stamp`: another one means that it is made again. */
type Section = { readonly definition: SourceDefinition; readonly options: unknown; readonly stamp: string }

export function createSourceReader({ dir, generation, own, clock }: ReaderParts): SourceReader {
  const stopping = new AbortController()
  /** The sources by name. Runs share them: each login counts at the other side. */
  const opened = new Map<string, { readonly stamp: string; readonly parts: SourceParts }>()

  function find(name: string): Section | undefined {
    const { config } = generation()
    const builtIn = listWithSection(config.hooks).find(({ definition }) => definition.name === name)
    if (builtIn !== undefined) return { ...builtIn, stamp: JSON.stringify(builtIn.options) }
    const section = own().find((each) => each.name === name)
    if (section === undefined) return undefined
    // its code may be corrected
    if (section.kind === 'broken') throw new SourceFailure(section.problem.detail)
    const { hash, options } = section
    const hide = createSecretMask(listConfigSecrets(config, []), '***')
    const definition = limitSource(section, { hide, maxBodyBytes: () => 0 })
    return { definition, options, stamp: JSON.stringify([hash, config.sources[name]]) }
  }

  function open(name: string, { definition, options, stamp }: Section): SourceParts {
    const known = opened.get(name)
    if (known?.stamp === stamp) return known.parts
    const parts = definition.create(options, createAsideHost({ dir, signal: stopping.signal, clock }))
    opened.set(name, { stamp, parts })
    return parts
  }

  return {
    read({ source, account, refs, maxBytes, signal }) {
      const section = find(source)
      if (section === undefined) return 'its source is no longer configured'
      // a ref of one account may be another file in another one
      if (section.definition.account(section.options) !== account) return 'its source watches another account now'
      return open(source, section).readFiles?.(refs, { maxBytes, signal }) ?? 'its source reads no files any more'
    },
    stop: () => stopping.abort(),
  }
}
