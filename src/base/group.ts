/** The items by their keys, in the order in which each key and each item came. */
export function groupBy<Item>(items: Iterable<Item>, toKey: (item: Item) => string): Map<string, [Item, ...Item[]]> {
  const groups = new Map<string, [Item, ...Item[]]>()
  for (const item of items) {
    const key = toKey(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}
