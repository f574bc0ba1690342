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
]
