// The plugins of the package, as tables that a generation takes.
import { createSenders } from './pipeline/senders.ts'
import { outboxes } from './plugins/outboxes/index.ts'
import { senderRows } from './plugins/senders/index.ts'

export const builtInSenders = createSenders(senderRows)
export const builtInOutboxes = outboxes
