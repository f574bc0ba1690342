// Findings of the rules of a configuration, in one form.
import { toDottedPath } from './issue.ts'

export type ConfigPath = readonly (string | number)[]
/**
 * `text` is one whole sentence that begins with the path. It never shows a value that may be a secret. `missed` is the section
 * that is not there: one that stands there with a mistake in it is not missing.
 */
export type ConfigIssue = { readonly path: ConfigPath; readonly text: string; readonly missed?: ConfigPath }

export function toIssue(path: ConfigPath, rest: string, missed?: ConfigPath): ConfigIssue {
  return { path, text: `${toDottedPath(path)} ${rest}`, ...(missed && { missed }) }
}

/** Every name that stands there a second time. */
export function toDuplicates(names: readonly (string | undefined)[], at: (index: number) => ConfigPath): ConfigIssue[] {
  return names.flatMap((name, index) => {
    const first = names.indexOf(name)
    if (name === undefined || first === index) return []
    return [toIssue(at(index), `is "${name}", the same as ${toDottedPath(at(first))}. Rename one of them.`)]
  })
}
