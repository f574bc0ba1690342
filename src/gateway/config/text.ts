// Reads the files of the configuration.
import { join } from 'node:path'
import { Problem } from '../../core/model/problem.ts'
import { readRegularFile, describeReadFault } from './env.ts'

export const configFile = 'hookloom.jsonc'
export const envFile = '.env'

const maxFileBytes = 10_000_000

/** The text of the file; undefined if it does not exist. Throws `config-invalid` if it cannot be read. */
export function readConfigText(dir: string, name: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
      readRegularFile(join(dir, name), maxFileBytes),
    )
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new Problem('config-invalid', `${name} in ${dir} cannot be read: ${describeReadFault(error)}.`, {
      cause: error,
    })
  }
}
