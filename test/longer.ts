/** `npm run test:longer -- NAME`: tests of the suite in a longer form, or too long for it; README.md says what each does. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { LOADER, PROJECT_PATH } from './support/project.ts';

const FORMS: Readonly<Record<string, { readonly settings: object; readonly files: string[] }>> = {
  bursts: { settings: {}, files: ['every-burst.ts'] },
  'event-readers': { settings: { MESH_TEST_EVENT_READERS: '1000' }, files: ['events.test.ts'] },
  'failing-calls': {
    settings: { MESH_TEST_CALLS: 'all' },
    files: ['failing-calls.deep.test.ts'],
  },
  fleet: {
    settings: {
      MESH_TEST_FLEET_DAYS: '30',
      MESH_TEST_FLEET_AGENTS: '10000',
      MESH_TEST_FLEET_KILLS: '20',
    },
    files: ['node-agent.test.ts', 'node-agent-kills.deep.test.ts', 'fleet-succession.deep.test.ts'],
  },
  flips: { settings: { MESH_TEST_FLIPS: '300' }, files: ['store/flips.deep.test.ts'] },
  kills: {
    settings: { MESH_TEST_KILLS: '50' },
    files: ['crash.test.ts', 'crash-successions.deep.test.ts'],
  },
  lapses: { settings: { MESH_TEST_LAPSE_DAYS: '1826' }, files: ['horizon.test.ts'] },
  'move-kills': { settings: { MESH_TEST_MOVE_KILLS: '15' }, files: ['store-move-kills.ts'] },
  release: {
    settings: { MESH_TEST_RELEASE_TWICE: '1' },
    files: ['release.deep.test.ts', 'kubernetes.deep.test.ts'],
  },
};

const form = FORMS[process.argv[2] ?? ''];
if (form === undefined) throw new Error(`Name one of ${Object.keys(FORMS).join(', ')}`);
const files = form.files.map((file) => join(PROJECT_PATH, 'test', file));
const env = { ...form.settings, ...process.env };
const args = [...LOADER, '--test', ...files];
process.exitCode = spawnSync(process.execPath, args, { env, stdio: 'inherit' }).status ?? 1;
