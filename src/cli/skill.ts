// Prints the guide for agents that write hooks: the page skill/SKILL.md of the package.
import { readFileSync } from 'node:fs'
import { resolvePackagePath } from '../base/package.ts'
import { exitCodes } from '../core/model/problem.ts'
import type { Context } from './terminal/context.ts'

export function readSkill(): string {
  return readFileSync(resolvePackagePath('src/cli/skill/SKILL.md'), 'utf8')
}

export async function skill(context: Context): Promise<number> {
  context.print(readSkill().trimEnd())
  return exitCodes.ok
}
