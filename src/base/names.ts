// Names of files, commands and keys.
import { z } from 'zod'

/** A valid file name that cannot lead to another folder. */
export const fileNamePattern = /^[A-Za-z\d][\w.-]{0,99}$/
/** A name that files, commands and URLs can have. */
export const plainName = z.string().regex(fileNamePattern, 'must be made of letters, digits, ".", "_" and "-"')
