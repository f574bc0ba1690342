// The table of senders: one row for each sender, in files by domain.
// Order is the priority of detection: Forgejo and Gitea also send the headers of the forges that they imitate, and many
// senders send the headers of a shared convention.
import type { Scheme } from './verifiers/scheme.ts'
import { agentsSenders } from './senders/agents.ts'
import { chatSenders } from './senders/chat.ts'
import { cloudSenders } from './senders/cloud.ts'
import { codeSenders } from './senders/code.ts'
import { conventionsSenders } from './senders/conventions.ts'
import { customersSenders } from './senders/customers.ts'
import { mailSenders } from './senders/mail.ts'
import { moneySenders } from './senders/money.ts'
import { operationsSenders } from './senders/operations.ts'
import { peopleSenders } from './senders/people.ts'
import type { Sender } from './senders/sender.ts'
import { shopsSenders } from './senders/shops.ts'
import { workSenders } from './senders/work.ts'

export const senders: readonly Sender[] = [
  ...codeSenders,
  ...operationsSenders,
  ...workSenders,
  ...moneySenders,
  ...shopsSenders,
  ...customersSenders,
  ...peopleSenders,
  ...chatSenders,
  ...mailSenders,
  ...cloudSenders,
  ...agentsSenders,
  // last, so that a sender with its own headers is preferred
  ...conventionsSenders,
]

export const schemes: readonly Scheme[] = senders.flatMap(({ source, label, docs, scheme, schemes: several }) => {
  if (docs === undefined) return []
  return (several ?? [scheme]).map(({ id = source, variant, ...row }) => ({
    ...row,
    id,
    source,
    label: variant === undefined ? label : `${label} (${variant})`,
    docs,
  }))
})
