// The built-in sources.
import { gmailSource } from './gmail/gmail.ts'
import type { SourceDefinition } from './shared/kit.ts'

export const sources: readonly SourceDefinition[] = [gmailSource]
