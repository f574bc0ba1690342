// The built-in runners.
import type { RunnerDefinition } from '../../define.ts'
import { aiRunner } from './ai.ts'
import { claudeRoutineRunner } from './claude-routine.ts'
import { commandRunner } from './command.ts'
import { echoRunner } from './echo.ts'
import { hermesRunner } from './hermes.ts'
import { mcpEventsRunner } from './mcp-events/mcp-events.ts'
import { openclawRunner } from './openclaw.ts'
import { workspaceAgentRunner } from './workspace-agent.ts'

export const runners: readonly RunnerDefinition[] = [
  commandRunner,
  openclawRunner,
  workspaceAgentRunner,
  claudeRoutineRunner,
  hermesRunner,
  mcpEventsRunner,
  aiRunner,
  echoRunner,
]
