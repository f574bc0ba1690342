// Finds the gateway that runs on a config directory. Every command that reads a store imports this file, so this file imports no
// schema, which would take long to load.
import { readFileSync } from 'node:fs'
import { isJsonObject, tryParseJson } from '../../base/json.ts'
import { toGatewayFile } from '../../model/places.ts'

/** `store`: the absolute path of its store, or the URL of its database without user, password and parameters. */
export type RunningGateway = {
  readonly pid: number
  readonly url: string
  readonly adminUrl: string
  readonly store: string | undefined
}

/** The gateway that runs here. */
export function findRunning(dir: string): RunningGateway | undefined {
  const address = readAddress(toGatewayFile(dir))
  return address !== undefined && isAlive(address.pid) ? address : undefined
}

/** The process id of a gateway that ended without a stop: only a stop deletes the address file. */
export function findKilledPid(dir: string): number | undefined {
  const pid = readAddress(toGatewayFile(dir))?.pid
  return pid === undefined || isAlive(pid) ? undefined : pid
}

function readAddress(file: string): RunningGateway | undefined {
  try {
    const found = tryParseJson(readFileSync(file, 'utf8'))
    if (!isJsonObject(found)) return undefined
    const { pid, url, adminUrl, store } = found
    const isNamed =
      typeof url === 'string' && URL.canParse(url) && typeof adminUrl === 'string' && URL.canParse(adminUrl)
    if (!isNamed || typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 0) return undefined
    return { pid, url, adminUrl, store: typeof store === 'string' ? store : undefined }
  } catch {
    return undefined
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: the process exists, and belongs to another user
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
