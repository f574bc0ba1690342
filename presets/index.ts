// The bundled presets. To add one, copy a folder and list it here.
import alertmanager from './alertmanager/preset.ts'
import calendly from './calendly/preset.ts'
import discord from './discord/preset.ts'
import generic from './generic/preset.ts'
import github from './github/preset.ts'
import gitlab from './gitlab/preset.ts'
import gmail from './gmail/preset.ts'
import grafana from './grafana/preset.ts'
import homeAssistant from './home-assistant/preset.ts'
import imap from './imap/preset.ts'
import linear from './linear/preset.ts'
import mcpEvents from './mcp-events/preset.ts'
import notion from './notion/preset.ts'
import pagerduty from './pagerduty/preset.ts'
import sentry from './sentry/preset.ts'
import shopify from './shopify/preset.ts'
import slack from './slack/preset.ts'
import stripe from './stripe/preset.ts'
import twilio from './twilio/preset.ts'

export const presets = [
  alertmanager,
  calendly,
  discord,
  generic,
  github,
  gitlab,
  gmail,
  grafana,
  homeAssistant,
  imap,
  linear,
  mcpEvents,
  notion,
  pagerduty,
  sentry,
  shopify,
  slack,
  stripe,
  twilio,
] as const
