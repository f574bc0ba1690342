// `recover` of a mapping: the API of its sender, which the gateway asks for deliveries that did not arrive.
import { z } from 'zod'

/** Marks `recover` in a JSON Schema, whose writer puts the keys of each sender there. */
export const recoverMark = 'x-recover'

export const turnOn = z
  .boolean()
  .default(false)
  .describe('Whether the gateway turns the webhook on again when its sender has switched it off.')

/** Which keys there are depends on the outbox of the sender, which is a plugin. So its other keys are checked by the rules of the configuration. */
export const Recover = z.looseObject({ sender: z.string(), turnOn: turnOn.optional() }).meta({ [recoverMark]: true })
export type Recover = z.infer<typeof Recover>
