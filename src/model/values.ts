// Values that schemas of several files have in common.
import { z } from 'zod'

/** A text that says something. */
export const filled = z.string().refine((text) => text.trim() !== '', 'must not be blank')

/** Where an API is: an http or https URL without a query, and without the slashes at its end. */
export const httpUrl = z
  .string()
  .regex(/^https?:\/\/[^\s?#]+$/i, 'must be an http or https URL without query')
  .transform((text) => text.replace(/\/+$/, ''))
