// Sections that name the plugin which reads them: `{ "kind": "…", … }`, as in `runners` and `sources`.
import { z } from 'zod'
import { plainName } from '../../base/names.ts'
import { nonBlank } from '../../core/model/values.ts'

/** What the configuration knows of a kind. `section`: the schema of a section of this kind; undefined if it has none. */
export type KnownKind = { readonly name: string; readonly section: z.ZodObject | undefined }

/** Sections by name. The plugin of its kind has checked each section. */
export type KindsConfig = Readonly<Record<string, { readonly kind: string; readonly [key: string]: unknown }>>

/** The schema of sections. `takesOthers`: a section of another kind belongs to a plugin that is not loaded yet. */
export function createKindsConfig(
  name: z.ZodString,
  all: readonly KnownKind[],
  { takesOthers }: { readonly takesOthers: boolean },
): z.ZodType<KindsConfig> {
  const sections = all.flatMap(({ section }) => section ?? [])
  const names = all.flatMap((each) => (each.section === undefined ? [] : [each.name]))
  const other = z.looseObject({ kind: nonBlank.refine((kind) => !names.includes(kind)) })
  // as: each section is an object with another kind, so that the one that fits is known
  const kinds = sections as unknown as [z.ZodObject<{ kind: z.ZodLiteral<string> }>]
  const known = sections.length === 0 ? undefined : z.discriminatedUnion('kind', kinds)
  if (takesOthers) return z.record(name, known === undefined ? other : z.union([known, other])).default({})
  // the engine has no runner and no source: each key is unknown
  return known === undefined ? z.strictObject({}).default({}) : z.record(name, known).default({})
}

/** The schema of `sources`. */
export function createSourcesConfig(
  sources: readonly KnownKind[],
  options: { readonly takesOthers: boolean },
): z.ZodType<KindsConfig> {
  return createKindsConfig(plainName, sources, options).describe(
    'What the gateway fetches itself by a plugin: `kind` and the options of the plugin, each under the name of the hook that gets it.',
  )
}
