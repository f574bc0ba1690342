// The parts of `hooks.gmail` that the command line needs. The commands must not load the schema.

/** How the gateway learns of new mails. `poll` needs only a consent; the other modes need a Google Cloud project. */
export const gmailModes = ['pull', 'push', 'poll'] as const
export type GmailMode = (typeof gmailModes)[number]

/** Minutes. The watch is checked at this interval, so it cannot be renewed more often. */
export const minRenewMinutes = 15
