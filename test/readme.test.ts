import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { buildProgram } from '../src/cli/program.ts';
import { OPTIONS, type OptionEntry, RATE_LIMIT_DEFAULTS } from '../src/config/options.ts';
import { ROUTES } from '../src/routes/table.ts';
import { PROJECT } from './support/project.ts';

const readme = readFileSync(new URL('README.md', PROJECT), 'utf8');

test('the README names every flag and variable of serve', () => {
  for (const { flag, variable } of Object.values<OptionEntry>(OPTIONS)) {
    if (flag !== null) assert.ok(readme.includes(flag.split(' ')[0] ?? ''), flag);
    if (variable !== null) assert.ok(readme.includes(`\`${variable}\``), variable);
  }
});

test('the README gives the default of every rate bucket', () => {
  const flat = readme.replaceAll('\n', ' ');
  for (const [bucket, limit] of Object.entries(RATE_LIMIT_DEFAULTS)) {
    assert.match(flat, new RegExp(`\`${bucket}\`[^\`]*(\`RENEW\`)? ?${limit}`), bucket);
  }
});

test('the README names every group of commands', () => {
  for (const command of buildProgram().commands) {
    assert.match(readme, new RegExp(`\`(?:mesh-na )?${command.name()}[\` ]`), command.name());
  }
});

test('the README names the beginning of every route', () => {
  for (const { path } of ROUTES) {
    const start = path
      .split('/')
      .slice(0, path.startsWith('/admin/') ? 3 : 2)
      .join('/');
    assert.ok(readme.includes(start), start);
  }
});
