// Creates a config directory, with new tokens and a sample transform.
import { toHookTokens } from '../model/config.ts'
import { loadConfig } from '../config/config.ts'
import { configFile } from '../config/text.ts'
import { Problem } from '../model/problem.ts'
import { type Context, toInvocation } from './terminal/context.ts'
import { makeFolder } from './scaffold/folder.ts'
import { toFields } from './terminal/print.ts'

/** Throws `config-invalid` if every file exists: nothing is overwritten. */
export async function init(context: Context, { from }: { from?: string | undefined } = {}): Promise<number> {
  if (from !== undefined) return initFrom(context, from)
  const { dir, env } = context
  const made = await makeFolder(dir)
  context.print(`Config directory ${dir}`)
  context.print(toFields(made.map(({ file, what }) => [what, file])))
  if (made.every(({ what }) => what === 'exists')) {
    throw new Problem('config-invalid', `${dir} has a configuration already. Nothing was overwritten or changed.`)
  }
  // an existing token is not printed
  if (!made.some(({ file, what }) => file === configFile && what === 'created')) return 0
  const { config } = loadConfig({ dir, env })
  context.print(
    [
      '',
      `Token   ${toHookTokens(config.hooks)[0] ?? 'none'}`,
      '',
      'Next',
      `  ${toInvocation(context, ['dev'])}     runs a gateway and prints a curl command to try it`,
      `  ${toInvocation(context, ['check'])}   checks the configuration and every module`,
      `  ${toInvocation(context, ['start'])}   runs the gateway in production`,
    ].join('\n'),
  )
  return 0
}

/** A config directory from the file of another program, with what "hookloom check" says of it. */
async function initFrom(context: Context, from: string): Promise<number> {
  await (await import('./import/import.ts')).importFrom(context, from)
  context.print(`\n${toInvocation(context, ['check'])}`)
  return (await import('./check.ts')).check(context)
}
