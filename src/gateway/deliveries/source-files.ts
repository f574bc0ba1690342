// Reads the files of items for their runs. A run may be on a gateway that does not watch the source, so the source is made for this alone.
import { listWithSection } from '../../plugins/sources/index.ts'
import { createAsideHost, limitSource } from '../../plugins/sources/shared/own.ts'
import { createSecretMask, listConfigSecrets } from '../../model/config/secrets.ts'
import type { ReadSourceFiles } from '../../model/source-files.ts'
import { type OwnSource, type SourceDefinition, SourceFailure } from '../../model/source.ts'
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

export function createSourceReader({ dir, generation, own, clock }: ReaderParts): ReadSourceFiles {
  function find(name: string): { readonly definition: SourceDefinition; readonly options: unknown } | undefined {
    const { config } = generation()
    const builtIn = listWithSection(config.hooks).find(({ definition }) => definition.name === name)
    const section = own().find((each) => each.name === name)
    if (builtIn !== undefined || section === undefined) return builtIn
    // its code may be corrected
    if (section.kind === 'broken') throw new SourceFailure(section.problem.detail)
    const hide = createSecretMask(listConfigSecrets(config, []), '***')
    return { definition: limitSource(section, { hide, maxBodyBytes: () => 0 }), options: section.options }
  }

  return ({ source, account, refs, maxBytes, signal }) => {
    const found = find(source)
    if (found === undefined) return 'its source is no longer configured'
    const { definition, options } = found
    // a ref of one account may be another file in another one
    if (definition.account(options) !== account) return 'its source watches another account now'
    const { readFiles } = definition.create(options, createAsideHost({ dir, signal, clock }))
    return readFiles?.(refs, { maxBytes, signal }) ?? 'its source reads no files any more'
  }
}
