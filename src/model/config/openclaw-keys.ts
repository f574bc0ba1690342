// Keys of OpenClaw configurations that do not exist here, each with its counterpart, for people who move from OpenClaw.

/** The counterparts by path, with `[]` for any index and `*` for any name. Each text is the rest of a sentence that begins with the path. */
const counterparts: Readonly<Record<string, string>> = {
  'gateway.auth': 'is gateway.token here: the token of the admin port.',
  'gateway.bind': 'is server.host here, an address such as "127.0.0.1".',
  'gateway.mode': 'is a key of OpenClaw that Hookloom does not have. Remove it.',
  'gateway.port': 'is server.port here.',
  'gateway.trustedProxies': 'is server.trustedProxies here.',
  'hooks.internal': 'belongs to a part of OpenClaw other than webhooks. Remove it.',
  'hooks.maxBodyBytes': 'is server.maxBodyBytes here.',
  'hooks.mappings[].accountId':
    'is a key of OpenClaw that Hookloom does not have: a channel has one account. Remove it.',
  'hooks.gmail.hookUrl':
    'is a key of OpenClaw that Hookloom does not have: the gateway watches the mailbox itself. Remove it.',
  'hooks.gmail.label': 'is hooks.gmail.labels here, a list such as ["INBOX"].',
  'hooks.gmail.pushToken': 'has no counterpart here: in mode push, Google signs with hooks.gmail.push.serviceAccount.',
  'hooks.gmail.renewEveryMinutes': 'is hooks.gmail.renewMinutes here.',
  'hooks.gmail.serve': 'is hooks.gmail.push here, with host for bind; mode pull needs none.',
  'hooks.gmail.tailscale':
    'has no counterpart here: mode pull needs no public URL, mode push takes it as push.endpoint.',
  'agents.defaults.heartbeat.target': 'is channels.default here.',
  'agents.list[].heartbeat.target': 'is channels.default here.',
  'channels.*.allowFrom': 'has no counterpart here: nothing is received from chats. Leave it out.',
  'channels.*.dmPolicy': 'has no counterpart here: nothing is received from chats. Leave it out.',
  'channels.*.enabled': 'has no counterpart here: remove the section of a channel that you do not use.',
  session: 'has no counterpart here. A mapping has sessionKey and sessionMode.',
}

/** The rest of a sentence about a key of OpenClaw; undefined for any other key. */
export function findCounterpart(path: readonly (string | number)[]): string | undefined {
  let key = ''
  for (const part of path) key += typeof part === 'number' ? '[]' : key === '' ? part : `.${part}`
  const ofAny = key.replace(/^channels\.[^.[\]]+\./, 'channels.*.')
  return Object.hasOwn(counterparts, ofAny) ? counterparts[ofAny] : undefined
}
