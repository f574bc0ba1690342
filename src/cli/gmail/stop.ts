// Ends the notifications of a mailbox at Google. Does not stop a running watcher.
import { readCredentials } from '../../plugins/sources/gmail/credentials.ts'
import { openGoogle } from '../../plugins/sources/gmail/google.ts'
import { loadConfig } from '../../gateway/config/config.ts'
import { exitCodes } from '../../core/model/problem.ts'
import type { Context } from '../terminal/context.ts'
import { createTools } from './auth.ts'
import { requireWatched } from './flags.ts'

export async function stop(context: Context, { dryRun }: { dryRun?: boolean }): Promise<number> {
  const { dir, env } = context
  const gmail = requireWatched(loadConfig({ dir, env }).config)
  if (gmail.mode === 'poll') {
    context.print('Mode poll has no notifications to end.')
    return exitCodes.ok
  }
  if (dryRun === true) {
    context.print(`  POST ${gmail.endpoints.gmail}/gmail/v1/users/me/stop\n\nNothing was changed.`)
    return exitCodes.ok
  }
  const google = openGoogle(gmail, { credentials: readCredentials(dir, gmail), clock: Date.now, tools: createTools() })
  await google.gmail.stop()
  context.print(
    `Google sends no more notifications of ${gmail.account}. A gateway with hooks.gmail.account, or "hookloom gmail run", turns them on again.`,
  )
  return exitCodes.ok
}
