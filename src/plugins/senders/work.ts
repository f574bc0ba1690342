// Planning, documents, tables, calendars and models. Facts are from the senders' public documentation.
import { defineSender } from '../../define.ts'
import { userAgent, all, body, header, sent } from './shared.ts'
import { anyHead, asanaSecret, noEvents, mondayChallenge, notionToken, getChallenge } from './handshakes.ts'

export const workSenders = [
  defineSender({
    name: 'linear',
    label: 'Linear',
    docs: 'https://linear.app/developers/webhooks',
    marks: [sent('linear-event'), sent('linear-delivery'), sent('linear-signature')],
    event: [header('linear-event'), body('type')],
    deliveryId: [header('linear-delivery')],
    answers: {
      place(read) {
        const type = read('type')
        return type === 'Issue'
          ? read('data.id')
          : type === 'Comment'
            ? read('data.issueId', 'data.issue.id')
            : undefined
      },
      commentId: (read) => (read('type') === 'Comment' ? read('data.id') : undefined),
    },
    scheme: {
      kind: 'hmac',
      header: 'linear-signature',
      timestamp: { in: 'body', path: 'webhookTimestamp', unit: 'ms' },
      // its page recommends 60 seconds, but three more attempts have the same bytes: after 1 minute, 1 hour and 6 hours
      toleranceSeconds: 28_800,
      retries: { time: 'first', seconds: 25_260, docs: 'https://linear.app/developers/webhooks' },
      textIsId: true,
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'jira',
    label: 'Jira',
    docs: 'https://developer.atlassian.com/cloud/jira/platform/webhooks/',
    marks: [sent('x-atlassian-webhook-identifier')],
    event: [body('webhookEvent')],
    deliveryId: [header('x-atlassian-webhook-identifier')],
    scheme: {
      kind: 'hmac',
      header: 'x-hub-signature',
      syntax: { prefix: 'sha256=' },
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'trello',
    label: 'Trello',
    docs: 'https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/',
    marks: [sent('x-trello-webhook')],
    event: [body('action.type')],
    deliveryId: [body('action.id')],
    scheme: {
      kind: 'hmac',
      header: 'x-trello-webhook',
      algorithm: 'sha1',
      encoding: 'base64',
      template: '{body}{url}',
      handshakes: [anyHead],
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'basecamp',
    label: 'Basecamp',
    // https://github.com/basecamp/bc3-api/blob/master/sections/webhooks.md
    marks: [userAgent(/^Basecamp3 Webhook/)],
    event: [body('kind')],
    deliveryId: [body('id')],
  }),
  defineSender({
    name: 'asana',
    label: 'Asana',
    docs: 'https://developers.asana.com/docs/webhooks-guide',
    marks: [sent('x-hook-signature')],
    scheme: {
      kind: 'hmac',
      header: 'x-hook-signature',
      handshakes: [asanaSecret, noEvents],
      secretHeaders: ['x-hook-secret'],
      handsOver: true,
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'clickup',
    label: 'ClickUp',
    docs: 'https://developer.clickup.com/docs/webhooksignature',
    event: [body('event')],
    scheme: {
      kind: 'hmac',
      header: 'x-signature',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'monday',
    label: 'monday.com',
    docs: 'https://developer.monday.com/api-reference/reference/webhooks',
    event: [body('event.type')],
    deliveryId: [all(body('event.triggerUuid'), body('event.subscriptionId'))],
    scheme: {
      kind: 'jwt',
      header: 'authorization',
      bearer: false,
      algorithm: 'HS256',
      handshakes: [mondayChallenge],
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'notion',
    label: 'Notion',
    docs: 'https://developers.notion.com/reference/webhooks',
    marks: [sent('x-notion-signature')],
    event: [body('type')],
    deliveryId: [body('id')],
    scheme: {
      kind: 'hmac',
      header: 'x-notion-signature',
      syntax: { prefix: 'sha256=' },
      handshakes: [notionToken],
      handsOver: true,
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'airtable',
    label: 'Airtable',
    docs: 'https://airtable.com/developers/web/api/webhooks-overview',
    marks: [sent('x-airtable-content-mac')],
    scheme: {
      kind: 'hmac',
      header: 'x-airtable-content-mac',
      syntax: { prefix: 'hmac-sha256=' },
      secretEncoding: 'base64',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'huggingface',
    label: 'Hugging Face',
    docs: 'https://huggingface.co/docs/hub/webhooks',
    event: [all(body('event.scope'), body('event.action'))],
    scheme: {
      kind: 'token',
      header: 'x-webhook-secret',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'box',
    label: 'Box',
    docs: 'https://developer.box.com/guides/webhooks/v2/signatures-v2',
    marks: [sent('box-delivery-id'), sent('box-signature-primary')],
    event: [body('trigger')],
    deliveryId: [body('id')],
    scheme: {
      kind: 'hmac',
      header: 'box-signature-primary',
      encoding: 'base64',
      template: '{body}{timestamp}',
      timestamp: { in: 'header', name: 'box-delivery-timestamp', unit: 'iso8601' },
      toleranceSeconds: 600,
      // the time is that of sending; its header with an id changes with each attempt, and the id of the payload does not
      retries: { time: 'anew', docs: 'https://developer.box.com/guides/webhooks/v2' },
      moreHeaders: /^box-signature-secondary$/,
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'dropbox',
    label: 'Dropbox',
    docs: 'https://www.dropbox.com/developers/reference/webhooks',
    marks: [sent('x-dropbox-signature')],
    scheme: {
      kind: 'hmac',
      header: 'x-dropbox-signature',
      // the app secret: https://github.com/gitleaks/gitleaks/blob/master/cmd/generate/config/rules/dropbox.go
      minSecretBytes: 15,
      handshakes: [getChallenge],
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'webflow',
    label: 'Webflow',
    docs: 'https://developers.webflow.com/data/docs/working-with-webhooks',
    marks: [sent('x-webflow-signature')],
    event: [body('triggerType')],
    scheme: {
      kind: 'hmac',
      header: 'x-webflow-signature',
      template: '{timestamp}:{body}',
      timestamp: { in: 'header', name: 'x-webflow-timestamp', unit: 'ms' },
      // three more attempts, ten minutes apart
      toleranceSeconds: 2_400,
      retries: {
        time: 'first',
        seconds: 1_800,
        docs: 'https://developers.webflow.com/data/v1.0.0/docs/limits-and-retries',
      },
      textIsId: true,
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'sanity',
    label: 'Sanity',
    docs: 'https://github.com/sanity-io/webhook-toolkit',
    marks: [sent('sanity-webhook-signature')],
    deliveryId: [header('idempotency-key')],
    scheme: {
      kind: 'hmac',
      header: 'sanity-webhook-signature',
      encoding: 'base64url',
      syntax: { separator: ',', joint: '=', field: 'v1' },
      template: '{timestamp}.{body}',
      timestamp: { in: 'field', name: 't', unit: 'ms' },
      // two more attempts, 30 seconds apart, each of 30 seconds at most
      toleranceSeconds: 300,
      retries: {
        time: 'first',
        seconds: 150,
        docs: 'https://www.sanity.io/docs/changelog/50ec6abf-fe0c-475b-ae72-314148860132',
      },
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'todoist',
    label: 'Todoist',
    docs: 'https://doist.github.io/todoist-sdk-typescript/api/functions/verifyWebhookSignature',
    marks: [sent('x-todoist-delivery-id'), sent('x-todoist-hmac-sha256')],
    event: [body('event_name')],
    deliveryId: [header('x-todoist-delivery-id')],
    scheme: {
      kind: 'hmac',
      header: 'x-todoist-hmac-sha256',
      encoding: 'base64',
      confidence: 'medium',
    },
  }),
  defineSender({
    name: 'figma',
    label: 'Figma',
    docs: 'https://developers.figma.com/docs/rest-api/webhooks-security',
    event: [body('event_type')],
    scheme: { kind: 'client-state', list: undefined, field: 'passcode', confidence: 'verified' },
  }),
]
