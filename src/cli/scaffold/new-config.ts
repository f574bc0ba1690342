// The configuration of a new config directory, with its tokens in `.env`.
import { renderEnvLine } from '../../gateway/config/env.ts'
import { renderFile } from './files.ts'

/** The text of a new hookloom.jsonc: the recommended configuration. `schema` is the path of the JSON Schema for editors, if one is written next to it. */
export function renderNewConfig({ schema }: { schema?: string } = {}): string {
  const line = schema === undefined ? '' : `\n  "$schema": ${JSON.stringify(schema)},\n`
  return renderFile('new-config.jsonc', { schema: line })
}

export function renderEnv({ token, gatewayToken }: { token: string; gatewayToken: string }): string {
  return [
    '# Secrets of hookloom.jsonc. The environment wins over this file.\n',
    renderEnvLine('HOOKLOOM_TOKEN', token),
    renderEnvLine('HOOKLOOM_GATEWAY_TOKEN', gatewayToken),
  ].join('')
}
