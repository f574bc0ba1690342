// The answer to the sender that a mapping or a transform sets in place of the receipt.
import { z } from 'zod'

/** The maximum size of the body, in bytes of UTF-8. The store keeps it as long as its delivery. */
const largestBody = 16_384

/**
 * The media types of text, XML and JSON. HTML, XHTML and SVG are not allowed: the body contains text of the sender, which a browser would run as
 * a script of the gateway's origin. The pattern also keeps line breaks and parameters out of the header.
 */
const contentTypes =
  /^(?:text\/plain|(?:text|application)\/xml|application\/json|application\/[a-z\d][a-z\d.-]{0,60}\+json)$/

/** `body`: a template in a mapping, the text itself in the result of a transform. */
export const SenderResponse = z.strictObject({
  status: z
    .int()
    .min(200)
    .max(299)
    .refine((status) => status !== 204 && status !== 205, 'must not be 204 or 205, which have no body')
    .default(200)
    .describe('Status of the answer, from 200 to 299, but neither 204 nor 205.'),
  contentType: z
    .string()
    .regex(
      contentTypes,
      'must be text/plain, text/xml, application/xml, application/json or application/<name>+json, without parameters',
    )
    .default('text/plain')
    .describe(
      'Media type of the answer: text/plain, text/xml, application/xml, application/json or application/<name>+json. The charset is always UTF-8.',
    ),
  body: z
    .string()
    .refine((body) => Buffer.byteLength(body) <= largestBody, `must have at most ${largestBody} bytes`)
    .default('')
    .describe(
      'Template of the answer, at most 16,384 bytes when it is rendered. Values are escaped for XML or JSON; in JSON, placeholders belong inside quotes.',
    ),
})
export type SenderResponse = z.infer<typeof SenderResponse>
