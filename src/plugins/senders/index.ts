// The built-in senders, in files by domain. Order is the priority of detection: Forgejo and Gitea also send the headers of the forges that they
// imitate, and many senders send the headers of a shared convention.
import type { SenderDefinition } from '../../define.ts'
import { accountsSenders } from './accounts.ts'
import { agentsSenders } from './agents.ts'
import { chatSenders } from './chat.ts'
import { cloudSenders } from './cloud.ts'
import { codeSenders } from './code.ts'
import { conventionsSenders } from './conventions.ts'
import { customersSenders } from './customers.ts'
import { mailSenders } from './mail.ts'
import { moneySenders } from './money.ts'
import { operationsSenders } from './operations.ts'
import { peopleSenders } from './people.ts'
import { shopsSenders } from './shops.ts'
import { teamsSenders } from './teams.ts'
import { workSenders } from './work.ts'

export const senderRows: readonly SenderDefinition[] = [
  ...codeSenders,
  ...operationsSenders,
  ...workSenders,
  ...moneySenders,
  ...accountsSenders,
  ...shopsSenders,
  ...customersSenders,
  ...peopleSenders,
  ...chatSenders,
  ...teamsSenders,
  ...mailSenders,
  ...cloudSenders,
  ...agentsSenders,
  // last, so that a sender with its own headers is preferred
  ...conventionsSenders,
]
