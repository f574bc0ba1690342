// The built-in outboxes.
import type { OutboxDefinition } from '../../define.ts'
import { basecampOutbox } from './basecamp.ts'
import { githubOutbox } from './github.ts'
import { gitlabOutbox } from './gitlab.ts'
import { shopifyOutbox } from './shopify.ts'
import { stripeOutbox } from './stripe.ts'

export const outboxes: readonly OutboxDefinition[] = [
  githubOutbox,
  gitlabOutbox,
  stripeOutbox,
  basecampOutbox,
  shopifyOutbox,
]
