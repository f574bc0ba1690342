// A new config directory, with fresh tokens and a sample transform.
import { configFile, loadConfig } from '../loader/config.ts'
import { Problem } from '../model/problem.ts'
import { type Context, toInvocation } from './terminal/context.ts'
import { makeFolder } from './scaffold/folder.ts'
import { toFields } from './terminal/print.ts'

/** Refuses with `config-invalid` where everything is there: it overwrites nothing. */
export async function init(context: Context): Promise<number> {
  const { dir, env } = context
  const made = await makeFolder(dir)
  context.print(`Config directory ${dir}`)
  context.print(toFields(made.map(({ file, what }) => [what, file])))
  if (made.every(({ what }) => what === 'exists')) {
    throw new Problem('config-invalid', `${dir} holds a configuration already. Nothing was overwritten or changed.`)
  }
  // a token that is in use already stays where it is
  if (!made.some(({ file, what }) => file === configFile && what === 'created')) return 0
  const { config } = loadConfig({ dir, env })
  context.print(
    [
      '',
      `Token   ${config.hooks.token ?? 'none'}`,
      '',
      'Next',
      `  ${toInvocation(context, ['dev'])}     try it: prints a curl line that works`,
      `  ${toInvocation(context, ['check'])}   the configuration and every module`,
      `  ${toInvocation(context, ['start'])}   in production`,
    ].join('\n'),
  )
  return 0
}
