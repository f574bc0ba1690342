// The bodies of the load: issue events of a given size. All bodies of a run differ, because a server that merges equal events would look
// fast.

/** The number of digits of a serial number. The first digit is never 0, so the number is also a valid JSON number. */
const serialDigits = 12
const firstSerial = 700_000_000_000

export type EventBody = {
  readonly bytes: Buffer
  /** Makes the body a new event: overwrites the serial number everywhere. */
  renumber(serial: number): void
}

/** Builds a body of about `size` bytes of ASCII JSON. `seed` varies the words. */
export function createEventBody(size: number, seed: number): EventBody {
  const marker = String(firstSerial)
  const event = {
    action: ['opened', 'edited', 'closed', 'labeled'][seed % 4],
    delivery: `delivery-${marker}`,
    issue: {
      number: firstSerial,
      title: `The nightly export of account ${seed} stops halfway`,
      html_url: `https://forge.example/acme/warehouse/issues/${marker}`,
      state: 'open',
      draft: false,
      user: { login: `person-${seed}`, id: 1000 + seed },
    },
    repository: { id: 4711, full_name: 'acme/warehouse', private: true },
    sender: { login: `person-${seed}`, type: 'User' },
    comments: [] as object[],
  }
  const buildComment = (index: number) => ({
    id: seed * 10_000 + index,
    user: { login: `person-${(seed + index) % 97}` },
    created_at: '2025-06-01T12:00:00Z',
    body: `Seen again on host ${index * 31 + seed}, "timeout" after ${index} s; see line ${seed}.\n`,
    reactions: { up: index % 5, down: 0 },
  })
  let length = JSON.stringify(event).length
  for (let index = 0; length < size; index += 1) {
    const comment = buildComment(index)
    event.comments.push(comment)
    length += JSON.stringify(comment).length + 1
  }
  const bytes = Buffer.from(JSON.stringify(event), 'latin1')
  const places: number[] = []
  for (let at = bytes.indexOf(marker); at >= 0; at = bytes.indexOf(marker, at + serialDigits)) places.push(at)
  return {
    bytes,
    renumber(serial) {
      const digits = String(firstSerial + serial)
      for (const place of places) bytes.write(digits, place, 'latin1')
    },
  }
}
