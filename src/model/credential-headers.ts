// Headers that carry a credential, by name: no condition, template, transform or row sees what they hold.

/**
 * Taken off every delivery. Authorization and x-service-token open this gateway; the other two open what stands before it: a
 * proxy, and whatever site shares its host name and its cookies.
 */
export const credentialHeaders: ReadonlySet<string> = new Set([
  'authorization',
  'x-service-token',
  'proxy-authorization',
  'cookie',
])

/** Shared secrets of senders that show a token instead of signing, where no mapping's scheme says so. They keep their name alone. */
export const senderSecrets: ReadonlySet<string> = new Set([
  'x-gitlab-token',
  'x-goog-channel-token',
  'x-telegram-bot-api-secret-token',
  'x-vapi-secret',
  'x-webhook-secret',
])
