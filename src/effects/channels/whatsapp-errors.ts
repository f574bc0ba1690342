// What the error codes of the Cloud API mean for one message; most come with status 400, so that the code decides.
// https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes
import type { ErrorMeaning } from './error-codes.ts'

/** The recipient has not written for 24 hours. */
export const windowClosed = 131_047

const unpermitted = final(
  'The access token lacks a permission: whatsapp_business_messaging to send, whatsapp_business_management to be looked up.',
)

export const meanings: ReadonlyMap<number, ErrorMeaning> = new Map<number, ErrorMeaning>([
  [4, limited('The app has made too many calls.')],
  [80_007, limited('The business account has made too many calls.')],
  [130_429, limited('The number sends too many messages.')],
  [131_048, limited('Meta holds the number back, since its messages were blocked or reported.')],
  // its limit is one message in six seconds
  [131_056, { ...limited('Too many messages went to this recipient.'), retryAfterMs: 6_000 }],
  [2, passing('The API is down or overloaded.')],
  [131_000, passing('Meta could not send it and gives no reason.')],
  [131_016, passing('The service is unavailable.')],
  [133_004, passing('The server is unavailable.')],
  [0, final('The access token is not valid any more. Renew channels.whatsapp.accessToken.')],
  [190, final('The access token is wrong or has expired. Renew channels.whatsapp.accessToken.')],
  [10, unpermitted],
  [200, unpermitted],
  [33, final('There is no such sending number. Check channels.whatsapp.phoneNumberId.')],
  [100, final('Meta refused a parameter. Check channels.whatsapp.phoneNumberId and the recipient.')],
  [131_026, final('The recipient has no WhatsApp, or has not accepted its terms. Check the number.')],
  [131_030, final('A test number sends to listed recipients only. Add this one in the app dashboard.')],
  [131_031, final('The business account is locked. See WhatsApp Manager.')],
  [131_042, final('The business account lacks a payment method. See WhatsApp Manager.')],
  [
    windowClosed,
    final(
      'The recipient has not written for 24 hours, and then WhatsApp takes templates only. ' +
        'Set channels.whatsapp.template to an approved template with one body variable.',
    ),
  ],
  [132_000, final('The template does not have one body variable. Check channels.whatsapp.template.')],
  [132_001, final('There is no such template in this language. Check channels.whatsapp.template.')],
  [132_015, final('The template is paused for its quality. See WhatsApp Manager.')],
  [133_010, final('The sending number is not registered. Register it in WhatsApp Manager.')],
])

function limited(hint: string): ErrorMeaning {
  return { kind: 'rate-limited', hint }
}

function passing(hint: string): ErrorMeaning {
  return { kind: 'transient', hint }
}

function final(hint: string): ErrorMeaning {
  return { kind: 'permanent', hint }
}
