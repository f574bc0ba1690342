// Every scheme that a mapping can name in `verify.scheme`, besides generic-hmac and those defined in code.
import type { Scheme } from './scheme.ts'
import { chatSchemes } from './schemes-chat.ts'
import { cloudSchemes } from './schemes-cloud.ts'
import { codeSchemes } from './schemes-code.ts'
import { customerSchemes } from './schemes-customers.ts'
import { moneySchemes } from './schemes-money.ts'
import { workSchemes } from './schemes-work.ts'

export const schemes: readonly Scheme[] = [
  ...codeSchemes,
  ...workSchemes,
  ...moneySchemes,
  ...customerSchemes,
  ...chatSchemes,
  ...cloudSchemes,
]
