// New and removed pages, changed properties and comments become agent turns.
import { z } from 'zod'
import { definePreset } from '../../src/define.ts'
import { type EventMapping, signedOptions, buildParts, toVerifySettings } from '../signed.ts'

const NotionOptions = z.strictObject({
  ...signedOptions,
  /** True: accepts the secret that Notion posts when the webhook is created, but only while `hookloom verify --arm` waits for it. */
  handed: z.boolean().default(false),
})
type NotionOptions = z.infer<typeof NotionOptions>

/**
 * One mapping for all events, because Notion posts the secret once, to one mapping. An event has only ids; the agent reads the text with Notion's
 * API. Source: https://developers.notion.com/reference/webhooks-events-delivery
 */
const events: readonly EventMapping[] = [
  {
    event: '',
    match: {
      payload: { type: ['page.created', 'page.deleted', 'page.properties_updated', 'comment.created'] },
      // A change by the agent itself must not become its next turn. One of several authors may be a person.
      any: [
        { payload: { 'authors[0].type': { not: ['bot', 'agent'] } } },
        { payload: { 'authors[1].type': 'person' } },
        { payload: { 'authors[2].type': 'person' } },
      ],
    },
    name: 'Notion',
    sessionKey: 'hook:notion:{{data.page_id | default: "pages"}}:{{entity.id}}',
    message: [
      '{{type}} in the workspace {{workspace_name | default: "without a name"}}, at {{timestamp | default: "an unknown time"}}.',
      'What: the {{entity.type | default: "entity"}} https://www.notion.so/{{entity.id}}',
      'In: the {{data.parent.type | default: "parent"}} https://www.notion.so/{{data.parent.id}}',
      'By: the {{authors[0].type | default: "author"}} {{authors[0].id | default: "unknown"}}',
      'Changed: {{data.updated_properties[0] | default: "no property named"}}',
    ],
  },
]

const instructions = 'Say in one or two sentences what changed in Notion, and where.'

export default definePreset<NotionOptions>({
  name: 'notion',
  title: 'New and removed pages, changed properties and comments become agent turns.',
  options: NotionOptions,
  setup: { options: { handed: true } },
  build({ handed, ...own }) {
    const verify = toVerifySettings('notion', own) ?? (handed ? { scheme: 'notion' } : undefined)
    return buildParts('notion', { own, verify, instructions, events })
  },
})
