// Where a command works.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** In the agent's workspace; without one, in an empty folder that nobody else can read and that is gone afterwards. */
export async function inWorkspace<T>(workspace: string | undefined, work: (folder: string) => Promise<T>): Promise<T> {
  if (workspace !== undefined) return await work(workspace)
  const folder = await mkdtemp(join(tmpdir(), 'hookloom-run-'))
  try {
    return await work(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
