// The files that `hookloom new plugin` writes, and what is left of them.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { renderFile } from './files.ts'

export const pluginsDir = join('hooks', 'plugins')
const pluginKinds = ['channel', 'runner', 'sender', 'outbox', 'source'] as const

/** The entry of `plugins` for a plugin of the config directory. */
export function toPluginEntry(name: string): string {
  return `./plugins/${name}.ts`
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
