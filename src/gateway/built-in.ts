// The senders of the package, as the table that a generation takes.
import { createSenders } from './proofs/senders.ts'
import { senderRows } from '../plugins/senders/index.ts'

export const builtInSenders = createSenders(senderRows)
