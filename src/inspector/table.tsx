// A table with a head for each column. A table that is wider than its place scrolls sideways.
import type { ComponentChildren, JSX } from 'preact'

/** `children`: the rows. */
type TableProps = { readonly label: string; readonly heads: readonly string[]; readonly children: ComponentChildren }

export function Table({ label, heads, children }: TableProps): JSX.Element {
  return (
    <div class="wide" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {heads.map((head) => (
              <th scope="col" key={head}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}
