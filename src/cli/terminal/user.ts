// The user who calls a command.
import { hostname, userInfo } from 'node:os'

/** The name of the user and the name of the machine. */
export function readUser(): string {
  return `${findUserName()}@${hostname()}`
}

/** The name, or the id: a container may run under a user id that has no name. */
function findUserName(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.() ?? 'somebody')
  }
}
