// Whether a gateway would start here without a degraded module: checks the configuration, every template, every module and its fixtures.
import { type Context, withProgress } from './terminal/context.ts'
import { checkConfig, checkMappings, checkWarnings, printFindings } from './checks/findings.ts'

export async function check(context: Context): Promise<number> {
  const { loaded, findings } = checkConfig(context)
  if (loaded === undefined) return printFindings(context, findings)
  const mappings = await withProgress(context, 'Building the transforms', () => checkMappings(context, loaded))
  return printFindings(context, [...findings, ...mappings, ...checkWarnings(loaded)])
}
