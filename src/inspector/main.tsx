// Starts the page of the admin port: exchanges the code of the link for a key, and shows the app.
import { render, type JSX } from 'preact'
import { useState } from 'preact/hooks'
import { onKeyExpired } from './api.ts'
import { App } from './app.tsx'
import { exchangeCode, readKey, takeCode } from './key.ts'
import { describeException } from './said.ts'

/** Shows why there is no key; undefined hides this notice. The page sets the function when it is rendered. */
let showNotice: (why: string | undefined) => void = () => {}

// this listener is registered before that of `usePlace`, so the code is removed before the page reads its address
const firstCode = takeCode()
addEventListener('hashchange', () => {
  const code = takeCode()
  if (code !== undefined) void openLink(code).then((problem) => showNotice(problem))
})

/** Resolves to the reason why there is no key. Undefined if there is a key. A link that no longer works does not remove a valid key. */
async function openLink(code: string): Promise<string | undefined> {
  const problem = await exchangeCode(code).then(
    () => undefined,
    (error: unknown) => describeException(error, 'The gateway does not answer.'),
  )
  return readKey() === null ? problem : undefined
}

function SignInNotice({ why }: { why: string }): JSX.Element {
  return (
    <main class="door">
      <h1>Hookloom</h1>
      {why !== '' && <p role="alert">{why}</p>}
      <p>
        Run <code>hookloom open</code> in a terminal. It opens this page with a new key, which is valid for twelve hours
        in this tab. You can also paste the link into this tab.
      </p>
    </main>
  )
}

function Page({ problem }: { problem: string | undefined }): JSX.Element {
  const [why, setWhy] = useState(problem)
  showNotice = setWhy
  onKeyExpired(setWhy)
  return why === undefined ? <App /> : <SignInNotice why={why} />
}

async function start(): Promise<void> {
  const problem = firstCode === undefined ? (readKey() === null ? '' : undefined) : await openLink(firstCode)
  const root = document.getElementById('page')
  if (root === null) return
  root.replaceChildren()
  render(<Page problem={problem} />, root)
}

void start()
