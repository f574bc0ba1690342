// The built-in sources.
import type { SourceDefinition } from '../../define.ts'
import { gmailSource } from './gmail/gmail.ts'

export const sources: readonly SourceDefinition[] = [gmailSource]
