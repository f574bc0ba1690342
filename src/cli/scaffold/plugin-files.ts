// The files that `hookloom new plugin` writes, and what is left of them.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pluginKinds } from '../../model/plugin.ts'
import { renderFile } from './files.ts'

export const pluginsDir = join('hooks', 'plugins')

/** The entry of `plugins` for a plugin of the config directory. */
export function toPluginEntry(name: string): string {
  return `./plugins/${name}.ts`
}

/** The name of a plugin of the config directory; undefined for another entry. */
export function readPluginName(entry: string): string | undefined {
  return /^\.\/plugins\/(.+)\.ts$/.exec(entry)?.[1]
}

/** The files of a plugin that exist. `isMade`: the file is as the command wrote it. */
export function listPluginFiles(dir: string, name: string): { readonly file: string; readonly isMade: boolean }[] {
  return ['', '.test'].flatMap((end) => {
    const file = join(dir, pluginsDir, `${name}${end}.ts`)
    if (!existsSync(file)) return []
    const text = readFileSync(file, 'utf8')
    return [{ file, isMade: pluginKinds.some((kind) => renderFile(`plugin-${kind}${end}.txt`, { name }) === text) }]
  })
}
