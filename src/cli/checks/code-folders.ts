// Whether other users of the machine can write the code that the gateway runs.
import { readdir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { readFileModes } from '../../gateway/config/warnings.ts'
import { isMissing } from '../../core/transforms/root.ts'
import type { CheckFinding } from './findings.ts'
import { quoteShellWord } from '../../base/shell.ts'

const maxNamesShown = 5

/** Checks the config directory, and every folder and file in its folder `hooks`, except installed packages. */
export async function checkCodeFolders(dir: string): Promise<CheckFinding> {
  const name = 'code-permissions'
  const found = readFileModes([dir, ...(await listBelow(join(dir, 'hooks')))]).filter(
    ({ mode }) => (mode & 0o022) !== 0,
  )
  if (found.length === 0) return { name, ok: true, detail: 'only their owner can write the folders and files of code' }
  const names = found.slice(0, maxNamesShown).map(({ file, mode }) => {
    return `${relative(dir, file) || dir} (mode ${mode.toString(8).padStart(3, '0')})`
  })
  const more = found.length > maxNamesShown ? ` and ${found.length - maxNamesShown} more` : ''
  const commands = [
    ...(found.some(({ file }) => file === dir) ? [`chmod go-w ${quoteShellWord(dir)}`] : []),
    ...(found.some(({ file }) => file !== dir) ? [`chmod -R go-w ${quoteShellWord(join(dir, 'hooks'))}`] : []),
  ]
  const detail = `${names.join(', ')}${more} can be written by other users, who can then run code in the gateway. Run: ${commands.join(' && ')}`
  return { name, ok: false, severity: 'warning', detail }
}

/** Lists the folder and its contents. Symlinks are not followed, because a build reads nothing outside of the folder. */
async function listBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
    if (isMissing(error)) return undefined
    throw error
  })
  if (entries === undefined) return []
  const below = await Promise.all(
    entries.map(async (entry) => {
      const path = join(folder, entry.name)
      if (entry.isDirectory() && entry.name !== 'node_modules') return await listBelow(path)
      return entry.isDirectory() || entry.isFile() ? [path] : []
    }),
  )
  return [folder, ...below.flat()]
}
