// What the heartbeats of the last day cost, as the admin API and `hookloom doctor` show it.
import { formatQuantity } from '../../base/text.ts'
import { listAgentIds } from '../jobs/agents.ts'
import { toHeartbeatName } from '../jobs/heartbeats.ts'
import type { Config } from '../../model/config/config.ts'
import type { TaskUsage } from '../../store/budgets.ts'
import type { StoreReader } from '../../store/store.ts'

const dayMs = 86_400_000

export function readHeartbeatUsage(store: Pick<StoreReader, 'taskUsage'>, config: Config): Promise<TaskUsage> {
  return store.taskUsage({ names: listAgentIds(config).map(toHeartbeatName), withinMs: dayMs })
}

export function describeHeartbeatUsage({ turns, uncounted, inputTokens, outputTokens }: TaskUsage): string {
  const count = `${formatQuantity(turns, 'turn')} in the last 24 hours`
  if (turns === uncounted) return turns === 0 ? count : `${count}, without a count of their tokens`
  const tokens = `${count}, with ${formatQuantity(inputTokens, 'token')} in and ${formatQuantity(outputTokens, 'token')} out`
  return uncounted === 0
    ? tokens
    : `${tokens}, without those of ${formatQuantity(uncounted, 'turn')} that reported none`
}
