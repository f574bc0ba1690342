// The file in the config directory with the address of this gateway. Commands read it.
import { rmSync } from 'node:fs'
import { writeStateFile } from '../base/files.ts'
import { toGatewayFile } from '../model/places.ts'

type Address = {
  readonly pid: number
  readonly url: string
  readonly adminUrl: string
  readonly startedAt: string
  /** The store of the configuration; absent if the program passed another store. */
  readonly store?: string
}

/** Writes the file. Returns a function that removes it. */
export async function writeAddress(dir: string, address: Address): Promise<() => void> {
  const file = toGatewayFile(dir)
  try {
    await writeStateFile(file, `${JSON.stringify(address)}\n`)
  } catch {
    // the store is in this folder too, and reports that it is not writable
  }
  return () => rmSync(file, { force: true })
}
