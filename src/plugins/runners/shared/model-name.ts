// The name of a model, `<provider>/<model>`, for a side that takes its parts.

/** No part of what is undefined, and no provider of a name without one. The name of a model may contain more slashes. */
export function splitModelName(name: string | undefined): { readonly provider?: string; readonly model?: string } {
  if (name === undefined) return {}
  const slash = name.indexOf('/')
  return slash < 0 ? { model: name } : { provider: name.slice(0, slash), model: name.slice(slash + 1) }
}
