import { expect, test } from 'vitest'
import { type DefaultRoute, resolveRoute } from '../../../../src/gateway/jobs/route.ts'
import type { ChannelName } from '../../../../src/core/model/action.ts'
import type { Recipient } from '../../../../src/model/job.ts'
import { scriptChannel } from './stage.ts'

type Options = {
  to?: string
  defaultRoute?: DefaultRoute
  last?: Recipient
  configured?: string[]
  /** The configured recipients of the channels: one for all channels, or one for each name of a channel. */
  own?: string | Readonly<Record<string, string>>
}

/** As in a gateway, the console needs no configuration. */
function findRoute(
  channel: ChannelName,
  { to, defaultRoute, last, configured = ['slack', 'telegram'], own }: Options = {},
) {
  const findRecipient = (name: string) => (typeof own === 'string' ? own : own?.[name])
  const channels = new Map([
    ['console', scriptChannel().channel],
    ...configured.map((name) => [name, scriptChannel(undefined, { to: findRecipient(name) }).channel] as const),
  ])
  const found = resolveRoute({ channel, to }, { last, defaultRoute, channels })
  return found.kind === 'none' ? found : { kind: found.kind, channel: found.name, to: found.to }
}

test('an explicit channel is used even if another one is the default', () => {
  expect(findRoute('slack', { to: 'C1', defaultRoute: { channel: 'telegram', to: '7' } })).toEqual({
    kind: 'route',
    channel: 'slack',
    to: 'C1',
  })
})

test('a default recipient is used on its own channel only', () => {
  const defaultRoute = { channel: 'telegram', to: '7' } as const
  expect(findRoute('telegram', { defaultRoute })).toMatchObject({ to: '7' })
  expect(findRoute('telegram', { defaultRoute, to: '8' })).toMatchObject({ to: '8' })
  expect(findRoute('slack', { defaultRoute })).toMatchObject({ to: undefined })
})

test('the channel "last" means channels.default, even if WhatsApp is configured', () => {
  const configured = ['whatsapp', 'telegram']
  expect(findRoute('last', { configured, defaultRoute: { channel: 'telegram', to: '7' } })).toEqual({
    kind: 'route',
    channel: 'telegram',
    to: '7',
  })
})

test('the channel "last" without a default means WhatsApp if it is configured', () => {
  expect(findRoute('last', { configured: ['whatsapp'], to: '+1' })).toEqual({
    kind: 'route',
    channel: 'whatsapp',
    to: '+1',
  })
})

test.each([undefined, { channel: 'last' } as const])(
  'the error for "last" without a route names the key to set (%j)',
  (defaultRoute) => {
    const none = findRoute('last', defaultRoute === undefined ? {} : { defaultRoute })
    expect(none).toMatchObject({ kind: 'none' })
    expect(none).toHaveProperty('detail', expect.stringContaining('Set channels.default'))
  },
)

test('the error for a channel that is not configured names its key', () => {
  expect(findRoute('discord')).toHaveProperty('detail', expect.stringContaining('channels.discord'))
  const byDefault = findRoute('last', { defaultRoute: { channel: 'signal' } })
  expect(byDefault).toHaveProperty('detail', expect.stringContaining('channels.signal'))
})

test('the channel "last" without a default means the only channel that has a recipient', () => {
  expect(findRoute('last', { own: { telegram: '7' } })).toEqual({ kind: 'route', channel: 'telegram', to: '7' })
  expect(findRoute('last', { own: { telegram: '7' }, to: '8' })).toMatchObject({ channel: 'telegram', to: '8' })
  expect(findRoute('last', { own: { telegram: '7' }, configured: ['whatsapp', 'telegram'] })).toMatchObject({
    channel: 'telegram',
  })
  expect(findRoute('last', { own: { telegram: '7' }, defaultRoute: { channel: 'slack', to: 'C1' } })).toMatchObject({
    channel: 'slack',
    to: 'C1',
  })
})

test('if several channels have a recipient, the channel "last" means WhatsApp, or none without WhatsApp', () => {
  expect(findRoute('last', { own: { slack: 'C1', telegram: '7' } })).toHaveProperty('kind', 'none')
  const own = { slack: 'C1', telegram: '7', whatsapp: '+1' }
  expect(findRoute('last', { own, configured: ['slack', 'telegram', 'whatsapp'] })).toMatchObject({
    channel: 'whatsapp',
    to: '+1',
  })
})

test('without any channel, the error for the channel "last" says that no channel is configured, and no other error does', () => {
  expect(findRoute('last', { configured: [] })).toMatchObject({
    kind: 'none',
    isWithoutChannels: true,
    detail: expect.stringContaining('no channel is configured'),
  })
  expect(findRoute('last', { configured: [], defaultRoute: { channel: 'console' } })).toMatchObject({
    channel: 'console',
  })
  expect(findRoute('last', { configured: ['slack'] })).not.toHaveProperty('isWithoutChannels')
  expect(findRoute('slack', { configured: [] })).not.toHaveProperty('isWithoutChannels')
})

test('the channel "last" means the last recipient of the main session, before any default', () => {
  const last = { channel: 'slack', to: 'C9' } as const
  const defaultRoute = { channel: 'telegram', to: '7' } as const
  expect(findRoute('last', { last, defaultRoute })).toMatchObject({ channel: 'slack', to: 'C9' })
  expect(findRoute('last', { last, defaultRoute, configured: ['telegram'] })).toMatchObject({
    channel: 'telegram',
    to: '7',
  })
})

test('the last recipient is used on its own channel only', () => {
  const last = { channel: 'slack', to: 'C9' } as const
  expect(findRoute('telegram', { last })).toMatchObject({ to: undefined })
  expect(findRoute('slack', { last })).toMatchObject({ to: 'C9' })
})

test('the recipient in the channel’s section comes after the last recipient and before the default one', () => {
  const defaultRoute = { channel: 'slack', to: 'C1' } as const
  expect(findRoute('slack', { own: 'C2', defaultRoute })).toMatchObject({ to: 'C2' })
  expect(findRoute('slack', { own: 'C2', last: { channel: 'slack', to: 'C3' } })).toMatchObject({ to: 'C3' })
})

test('the channel "last" never means WhatsApp without a recipient', () => {
  expect(findRoute('last', { configured: ['whatsapp'] })).toHaveProperty('kind', 'none')
  expect(findRoute('last', { configured: ['whatsapp'], own: '+1' })).toMatchObject({ channel: 'whatsapp', to: '+1' })
})

test('an invalid recipient gives no route, and the error gives the reason of the channel', () => {
  const { channel } = scriptChannel(undefined, { whyNot: (to) => `"${to}" is no chat id.` })
  const found = resolveRoute(
    { channel: 'telegram', to: 'x' },
    { last: undefined, defaultRoute: undefined, channels: new Map([['telegram', channel]]) },
  )
  expect(found).toEqual({ kind: 'none', detail: 'No route: "x" is no chat id.', quotes: true })
})
