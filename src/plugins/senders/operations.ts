// Errors, alerts and incidents. Facts are from the senders' public documentation.
import { defineSender } from '../../define.ts'
import { userAgent, body, header, sent } from './shared.ts'

export const operationsSenders = [
  defineSender({
    name: 'sentry',
    label: 'Sentry',
    docs: 'https://docs.sentry.io/organization/integrations/integration-platform/webhooks/',
    marks: [sent('sentry-hook-resource'), sent('sentry-hook-signature')],
    event: [header('sentry-hook-resource')],
    deliveryId: [header('request-id')],
    scheme: {
      kind: 'hmac',
      header: 'sentry-hook-signature',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'pagerduty',
    label: 'PagerDuty',
    docs: 'https://developer.pagerduty.com/docs/webhook-signatures',
    marks: [sent('x-pagerduty-signature')],
    event: [body('event.event_type')],
    deliveryId: [body('event.id')],
    scheme: {
      kind: 'hmac',
      header: 'x-pagerduty-signature',
      syntax: { separator: ',', joint: '=', field: 'v1' },
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'grafana',
    label: 'Grafana',
    docs: 'https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/',
    marks: [sent('x-grafana-alerting-signature'), userAgent(/^Grafana\b/)],
    event: [body('status')],
    scheme: {
      kind: 'hmac',
      header: 'x-grafana-alerting-signature',
      timedTemplate: '{timestamp}:{body}',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'datadog',
    label: 'Datadog',
    docs: 'https://docs.datadoghq.com/integrations/webhooks/',
    event: [body('event_type')],
    scheme: {
      kind: 'token',
      header: undefined,
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'alertmanager',
    label: 'Alertmanager',
    docs: 'https://prometheus.io/docs/alerting/latest/configuration/#webhook_config',
    marks: [userAgent(/^Alertmanager\//)],
    event: [body('status')],
    scheme: {
      kind: 'token',
      header: 'authorization',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'launchdarkly',
    label: 'LaunchDarkly',
    docs: 'https://launchdarkly.com/docs/home/infrastructure/webhooks',
    marks: [sent('x-ld-signature')],
    event: [body('kind')],
    deliveryId: [body('_id')],
    scheme: {
      kind: 'hmac',
      header: 'x-ld-signature',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'statsig',
    label: 'Statsig',
    docs: 'https://docs.statsig.com/integrations/event_webhook/',
    marks: [sent('x-statsig-signature')],
    scheme: {
      kind: 'hmac',
      header: 'x-statsig-signature',
      syntax: { prefix: 'v0=' },
      template: 'v0:{timestamp}:{body}',
      timestamp: { in: 'header', name: 'x-statsig-request-timestamp', unit: 'ms' },
      toleranceSeconds: 86_400,
      retries: { time: 'unsaid', docs: 'https://docs.statsig.com/integrations/event_webhook/' },
      textIsId: true,
      confidence: 'medium',
    },
  }),
  defineSender({
    name: 'meraki',
    label: 'Cisco Meraki',
    docs: 'https://developer.cisco.com/meraki/webhooks/',
    event: [body('alertType')],
    scheme: { kind: 'client-state', list: undefined, field: 'sharedSecret', confidence: 'verified' },
  }),
]
