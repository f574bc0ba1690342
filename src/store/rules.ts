// The rules that every engine follows alike.

/** A text as every engine can keep it: SQLite cuts one at a NUL and Postgres refuses it, so U+FFFD stands for it. */
export function toStoredText(text: string): string {
  return text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text
}

/** Why an attempt counts that nobody reported about: kept as the job's last error. */
export const leaseLost = 'The gateway that held this job died, or lost its lease, before it reported.'

/** Why a job ended that was never tried: kept as its last error. */
export const rowDamaged =
  'The row of this job in the store is damaged. Run "hookloom doctor", and restore the store from a backup if it finds more.'

/** A retry that waits for longer was set by a clock that was ahead and has been set back: nobody is asked to wait for more than a day. */
export const clockSetBackMs = 2 * 86_400_000
