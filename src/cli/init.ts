// Creates a config directory, with new tokens and a sample transform.
import { loadConfig } from '../gateway/config/config.ts'
import { configFile } from '../gateway/config/text.ts'
import { Problem } from '../core/model/problem.ts'
import { type Context, formatInvocation } from './terminal/context.ts'
import { createConfigFolder } from './scaffold/folder.ts'
import { renderFields } from './terminal/print.ts'
import { listHookTokens } from '../model/config/plan-settings.ts'

/** Throws `config-invalid` if all files exist already. Never overwrites a file. */
export async function init(context: Context, { from }: { from?: string | undefined } = {}): Promise<number> {
  if (from !== undefined) return initFrom(context, from)
  const { dir, env } = context
  const made = await createConfigFolder(dir)
  context.print(`Config directory ${dir}`)
  context.print(renderFields(made.map(({ file, what }) => [what, file])))
  if (made.every(({ what }) => what === 'exists')) {
    throw new Problem('config-invalid', `${dir} has a configuration already. Nothing was overwritten or changed.`)
  }
  // the token of an existing configuration is not printed
  if (!made.some(({ file, what }) => file === configFile && what === 'created')) return 0
  const { config } = loadConfig({ dir, env })
  context.print(
    [
      '',
      `Token   ${listHookTokens(config.hooks)[0] ?? 'none'}`,
      '',
      'Next',
      `  ${formatInvocation(context, ['dev'])}     runs a gateway and prints a curl command to try it`,
      `  ${formatInvocation(context, ['check'])}   checks the configuration and every module`,
      `  ${formatInvocation(context, ['start'])}   runs the gateway in production`,
    ].join('\n'),
  )
  return 0
}

/** Imports the configuration of another program into a new config directory, and prints the findings of "hookloom check". */
async function initFrom(context: Context, from: string): Promise<number> {
  await (await import('./import/import.ts')).importFrom(context, from)
  context.print(`\n${formatInvocation(context, ['check'])}`)
  return (await import('./check.ts')).check(context)
}
