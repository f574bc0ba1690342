// The gateway on a developer's terminal: creates its config directory, shows problems in its answers, prints commands to try.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import colors from 'picocolors'
import type { Hookloom } from '../app.ts'
import { loadConfig } from '../config/config.ts'
import { configFile } from '../config/text.ts'
import { type Config, listHookTokens } from '../model/config.ts'
import { type Context, formatInvocation, quoteShellWord } from './terminal/context.ts'
import { hooksAreOff } from './checks/findings.ts'
import { createConfigFolder, toFixturePath } from './scaffold/folder.ts'
import { createPrettyLog } from './gateway/log.ts'
import { readVersion } from './scaffold/package.ts'
import { type Ports, serve } from './gateway/serve.ts'

export async function dev(context: Context, ports: Ports): Promise<number> {
  const { dir, env } = context
  const isNew = !existsSync(join(dir, configFile))
  if (isNew) await createConfigFolder(dir)
  const { config } = loadConfig({ dir, env })
  return serve({
    dir,
    env,
    ...ports,
    development: true,
    log: await createPrettyLog(),
    announce: (gateway) => context.print(renderWelcome(context, gateway, { isNew, hooks: config.hooks })),
  })
}

function renderWelcome(
  context: Context,
  { url, adminUrl }: Hookloom,
  { isNew, hooks }: { isNew: boolean; hooks: Config['hooks'] },
): string {
  const { dir } = context
  const [token = ''] = listHookTokens(hooks)
  const fixture = toFixturePath(dir, 'opened.json')
  const curl = [
    // an IPv6 address has brackets
    'curl -sS --globoff',
    quoteShellWord(`${url}/agent`),
    `-H ${quoteShellWord(`Authorization: Bearer ${token}`)}`,
    `-H 'Content-Type: application/json'`,
    `--data-raw '{"name":"Hello","message":"Say hello to Hookloom"}'`,
  ].join(' ')
  return [
    `${colors.bold(`Hookloom ${readVersion()}`)} in ${dir}${isNew ? ', which is new' : ''}`,
    '',
    `  Hooks  ${url}`,
    `  Admin  ${adminUrl}`,
    `  Token  ${token}`,
    '',
    ...(hooks.enabled ? ['An agent run; its reply appears below:', `  ${curl}`] : [hooksAreOff]),
    ...(hooks.enabled && existsSync(fixture)
      ? [
          '',
          'A pull request through the sample transform:',
          `  ${formatInvocation(context, ['send', 'github', fixture])}`,
        ]
      : []),
    '',
    'Ctrl-C stops the gateway.',
    '',
  ].join('\n')
}
