// Who calls a command.
import { hostname, userInfo } from 'node:os'

/** The name of the user and of the machine. */
export function readUser(): string {
  return `${findUserName()}@${hostname()}`
}

/** A container may run under a number that has no name. */
function findUserName(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.() ?? 'somebody')
  }
}
