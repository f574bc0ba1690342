// The built-in runners.
import type { RunnerDefinition } from '../../define.ts'
import { aiRunner } from './ai.ts'
import { commandRunner } from './command.ts'
import { echoRunner } from './echo.ts'
import { openclawRunner } from './openclaw.ts'

export const runners: readonly RunnerDefinition[] = [commandRunner, openclawRunner, aiRunner, echoRunner]
