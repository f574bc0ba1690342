// A post of an automation with rest_command becomes an agent turn.
import { defineSignedPreset } from '../signed.ts'

/**
 * The automation defines the payload; README.md shows the expected one.
 * Source: https://www.home-assistant.io/integrations/rest_command/
 */
export default defineSignedPreset({
  name: 'home-assistant',
  title: 'What an automation posts with rest_command becomes an agent turn.',
  scheme: 'home-assistant',
  from: 'operator',
  instructions: 'Say in one or two sentences what happened at home, and whether somebody should act.',
  events: [
    {
      event: '',
      match: {},
      name: 'Home Assistant',
      sessionKey: 'hook:home-assistant:{{entity_id | default: "home" | truncate: 300}}',
      message: [
        '{{title | default: "An automation has something to say"}}',
        '{{payload.message | default: "(no message)" | truncate: 6000}}',
        'Entity: {{entity_id | default: "none"}}; state: {{state | default: "not given"}}',
        'Area: {{area | default: "not given"}}',
      ],
    },
  ],
})
