// Prints a link to the page of the running gateway, and opens it if there is a browser.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { writeStateFile } from '../base/files.ts'
import type { Env } from '../gateway/config/env.ts'
import { exitCodes } from '../core/model/problem.ts'
import type { Context } from './terminal/context.ts'
import { askAdmin, findAdmin } from './gateway/gateway.ts'

export async function open(context: Context, { browser }: { browser: boolean }): Promise<number> {
  const { code, until } = await askAdmin(context, 'POST /api/page/code')
  const url = toLink(context, code)
  const command = browser ? findBrowser(context.env) : undefined
  if (context.json) context.printJson({ url, until, opened: command !== undefined })
  else context.print(url)
  if (command === undefined)
    context.note('The link works once, and for a minute. Open it in a browser on this machine.')
  else await launch(context.dir, url, command)
  return exitCodes.ok
}

/** A link to the page of the running gateway. The link works once, within a minute. */
export async function createPageLink(context: Context): Promise<string> {
  return toLink(context, (await askAdmin(context, 'POST /api/page/code')).code)
}

function toLink(context: Context, code: string): string {
  return `${findAdmin(context).adminUrl}/#k=${code}`
}

/** The command that opens a browser: `BROWSER`, else in a terminal the opener of the desktop. Undefined if there is none. */
function findBrowser(env: Env): string | undefined {
  if (env['BROWSER'] !== undefined && env['BROWSER'] !== '') return env['BROWSER']
  if (!process.stdout.isTTY) return undefined
  if (process.platform === 'darwin') return 'open'
  if (process.platform === 'win32') return 'explorer'
  return env['DISPLAY'] !== undefined || env['WAYLAND_DISPLAY'] !== undefined ? 'xdg-open' : undefined
}

/**
 * Opens the link through a file that only its owner can read. As an argument, the link would be visible to other users of the machine, and
 * one of them could use its code first.
 */
async function launch(dir: string, url: string, command: string): Promise<void> {
  const file = join(dir, 'state', 'open.html')
  await writeStateFile(
    file,
    `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=${url}">\n`,
  )
  const child = spawn(command, [pathToFileURL(file).href], { detached: true, stdio: 'ignore' })
  child.once('error', () => undefined)
  child.unref()
}
