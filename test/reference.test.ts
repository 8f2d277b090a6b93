import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { buildProgram } from '../src/cli/program.ts';
import { OPTIONS, type OptionEntry, RATE_LIMIT_DEFAULTS } from '../src/config/options.ts';
import { ROUTES } from '../src/routes/table.ts';
import { PROJECT } from './support/project.ts';

const reference = readFileSync(new URL('docs/reference.md', PROJECT), 'utf8');

test('the reference names every flag and variable of serve', () => {
  for (const { flag, variable } of Object.values<OptionEntry>(OPTIONS)) {
    if (flag !== null) assert.ok(reference.includes(flag.split(' ')[0] ?? ''), flag);
    if (variable !== null) assert.ok(reference.includes(`\`${variable}\``), variable);
  }
});

test('the reference gives the default of every rate bucket', () => {
  const flat = reference.replaceAll('\n', ' ');
  for (const [bucket, limit] of Object.entries(RATE_LIMIT_DEFAULTS)) {
    assert.match(flat, new RegExp(`\`${bucket}\`[^\`]*(\`RENEW\`)? ?${limit}`), bucket);
  }
});

test('the reference names every group of commands', () => {
  for (const command of buildProgram().commands) {
    assert.match(reference, new RegExp(`\`(?:mesh-na )?${command.name()}[\` ]`), command.name());
  }
});

test('the reference names the beginning of every route', () => {
  for (const { path } of ROUTES) {
    const start = path
      .split('/')
      .slice(0, path.startsWith('/admin/') ? 3 : 2)
      .join('/');
    assert.ok(reference.includes(start), start);
  }
});
