// Chats of companies, and chats inside other products. Facts are from the senders' public documentation.
import { defineSender } from '../../define.ts'
import { body, header, sent } from './shared.ts'
import { larkProof, larkTokenProof, larkTokenUrl, larkUrl } from './lark.ts'
import { dingtalkProof } from './proofs.ts'

export const teamsSenders = [
  defineSender({
    name: 'lark',
    label: 'Feishu and Lark',
    docs: 'https://open.larkoffice.com/document/ukTMukTMukTM/uYDNxYjL2QTM24iN0EjN/event-subscription-configure-/encrypt-key-encryption-configuration-case',
    marks: [sent('x-lark-signature'), sent('x-lark-request-timestamp')],
    event: [body('header.event_type'), body('event.type'), body('type')],
    deliveryId: [body('header.event_id'), body('uuid')],
    schemes: [
      {
        id: 'lark',
        variant: 'Encrypt Key',
        kind: 'code',
        code: larkProof,
        about: 'SHA-256 of time, nonce, key and body; the delivery has what is encrypted in it',
        // four more attempts: after 15 s, 5 min, 1 h and 6 h
        toleranceSeconds: 25_800,
        retries: {
          time: 'first',
          seconds: 25_515,
          docs: 'https://open.larkoffice.com/document/ukTMukTMukTM/uYDNxYjL2QTM24iN0EjN/event-subscription-configure-/choose-a-subscription-mode/send-notifications-to-developers-server',
        },
        handshakes: [larkUrl],
        confidence: 'medium',
      },
      {
        id: 'lark-token',
        variant: 'Verification Token',
        kind: 'code',
        code: larkTokenProof,
        about: 'shared word in the body; nothing else',
        handshakes: [larkTokenUrl],
        confidence: 'verified',
      },
    ],
  }),
  defineSender({
    name: 'dingtalk',
    label: 'DingTalk (robots)',
    docs: 'https://open.dingtalk.com/document/orgapp/receive-message',
    marks: [sent('sign', 'timestamp')],
    event: [body('msgtype')],
    deliveryId: [body('msgId')],
    scheme: {
      kind: 'code',
      code: dingtalkProof,
      about: 'HMAC-SHA256 of the time, not of the message',
      toleranceSeconds: 3_600,
      retries: {
        time: 'limited',
        seconds: 3_600,
        docs: 'https://open.dingtalk.com/document/orgapp/receive-message',
      },
      confidence: 'medium',
    },
  }),
  defineSender({
    name: 'getstream',
    label: 'Stream (chat, video, feeds)',
    docs: 'https://getstream.io/chat/docs/php/webhooks_overview/',
    marks: [sent('x-webhook-attempt', 'x-api-key')],
    event: [body('type')],
    deliveryId: [header('x-webhook-id')],
    scheme: {
      kind: 'hmac',
      header: 'x-signature',
      confidence: 'medium',
    },
  }),
]
