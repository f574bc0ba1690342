// The file in the config directory with the address of this gateway. Commands read it.
import { readFileSync, rmSync } from 'node:fs'
import { writeStateFile } from '../../base/files.ts'
import { toGatewayFile } from '../../model/places.ts'

type Address = {
  readonly pid: number
  readonly url: string
  readonly adminUrl: string
  readonly startedAt: string
  /** The store of the configuration, as `describeStorePlace` shows it. Absent if the program passed another store. */
  readonly store?: string
}

/** Writes the file. Returns a function that removes it, unless another gateway on the same directory has replaced it. */
export async function writeAddress(dir: string, address: Address): Promise<() => void> {
  const file = toGatewayFile(dir)
  const text = `${JSON.stringify(address)}\n`
  try {
    await writeStateFile(file, text)
  } catch {
    // without the file, commands use the configured ports
  }
  return () => {
    if (readIfPossible(file) === text) rmSync(file, { force: true })
  }
}

function readIfPossible(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}
