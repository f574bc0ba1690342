// Starts the page of the admin port: gets a key from the code of the link, from another tab or from a person, and shows the app.
import { render, type JSX } from 'preact'
import { useState } from 'preact/hooks'
import { onKeyExpired } from './api.ts'
import { App } from './app.tsx'
import { applyColors } from './colors.tsx'
import { exchangeCode, readKey, readLink, takeCode } from './key.ts'
import { describeException } from './said.ts'
import { askTabs, joinTabs, tellTabs } from './tabs.ts'

/** Shows why there is no key; undefined shows the app. The page sets the function when it is rendered. */
let showDoor: (why: string | undefined) => void = () => {}

// this listener is registered before that of `usePlace`, so the code is removed before the page reads its address
const firstCode = takeCode()
addEventListener('hashchange', ({ oldURL }) => {
  const code = takeCode(new URL(oldURL).hash)
  if (code !== undefined) void enter(code).then((problem) => showDoor(problem))
})

/**
 * Exchanges a code or a token. Resolves to the reason why there is no key. Undefined if there is a key. A link that no longer works does not remove a
 * valid key.
 */
async function enter(code: string): Promise<string | undefined> {
  const problem = await exchangeCode(code).then(tellTabs, (error: unknown) =>
    describeException(error, 'The gateway does not answer.'),
  )
  return readKey() === null ? (problem ?? '') : undefined
}

function Door({ why }: { why: string }): JSX.Element {
  const [text, setText] = useState('')
  const submit = async () => {
    const link = readLink(text)
    if (link !== undefined && link.place !== '') history.replaceState(null, '', `/${link.place}`)
    showDoor(await enter(link?.code ?? text.trim()))
  }
  return (
    <main class="door">
      <h1>Hookloom</h1>
      {why !== '' && <p role="alert">{why}</p>}
      <p>
        Run <code>hookloom open</code> in a terminal. It opens this page with a new key, which is valid for twelve hours
        in all tabs of this browser.
      </p>
      <form
        class="tools"
        onSubmit={(event) => {
          event.preventDefault()
          if (text.trim() !== '') void submit()
        }}
      >
        <label for="code">Or paste its link, or a token with the right to read:</label>
        <input
          id="code"
          type="password"
          autocomplete="off"
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
        <button type="submit">open</button>
      </form>
    </main>
  )
}

function Page({ problem }: { problem: string | undefined }): JSX.Element {
  const [why, setWhy] = useState(problem)
  showDoor = setWhy
  onKeyExpired((sentence) => {
    setWhy(sentence)
    askTabs()
  })
  return why === undefined ? <App /> : <Door why={why} />
}

/** How long the page waits for another tab before it shows the door, which opens when the key comes later. */
const tabsMs = 500

async function start(): Promise<void> {
  const hasKey = new Promise<void>((resolve) => {
    joinTabs(() => {
      resolve()
      showDoor(undefined)
    })
  })
  if (firstCode === undefined && readKey() === null) {
    askTabs()
    await Promise.race([hasKey, new Promise((done) => setTimeout(done, tabsMs))])
  }
  const problem = firstCode === undefined ? (readKey() === null ? '' : undefined) : await enter(firstCode)
  const root = document.getElementById('page')
  if (root === null) return
  root.replaceChildren()
  render(<Page problem={problem} />, root)
}

applyColors()
void start()
