// Markdown as Teams reads it. https://learn.microsoft.com/microsoftteams/platform/bots/how-to/format-your-bot-messages
import { safeMarkdown } from './flavours.ts'
import type { Flavour } from './markdown.ts'

/** Teams reads HTML inside Markdown, too: a sign that could begin a tag is written as an entity. */
export const teamsMarkdown: Flavour = {
  ...safeMarkdown,
  text: (plain, source) => safeMarkdown.text(plain, source).replaceAll('<', '&lt;'),
  // Teams knows no <…> around an address
  link: (inner, address) => `[${inner}](${address.replace(/[()<>]/g, toPercent)})`,
}

function toPercent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}
