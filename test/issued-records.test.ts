/** What attestations and treaties have in common [core-4-11], [core-4-13]: labels, issuers, roles, reasons and filters. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { JsonObject } from '../src/base/json/value.ts';
import { startTestAuthority } from './support/authority.ts';
import { HOUR } from './support/clock.ts';
import { valuesExcept } from './support/hostile.ts';
import { get, outcome } from './support/requests.ts';
import {
  attest,
  audited,
  issued,
  parsed,
  recognize,
  revokeAttestation,
  revokeTreaty,
  verifies,
} from './support/trust.ts';

const KINDS = [
  {
    ...{ what: 'attestation', id: 'attestation_id', subject: 'subject_id' },
    ...{ path: '/attestations', list: 'attestations' },
    ...{ issue: attest, revoke: revokeAttestation, revoked: 'membership_attestation_revoked' },
    withRoles: (...roles: string[]) => ({ roles }),
    wrong: { roles: [] },
    refusal: '400 missing_attestation_subject',
    wrongIssuer: '400 attestation_issuer_mismatch',
    notFound: '404 attestation_not_found',
  },
  {
    ...{ what: 'treaty', id: 'treaty_id', subject: 'subject_sovereign_id' },
    ...{ path: '/recognition-treaties', list: 'recognition_treaties' },
    ...{ issue: recognize, revoke: revokeTreaty, revoked: 'recognition_treaty_revoked' },
    withRoles: (...allowed_roles: string[]) => ({ scope: { allowed_roles } }),
    wrong: { subject_public_keys: [] },
    refusal: '400 empty_subject_public_keys',
    wrongIssuer: '400 wrong_issuer',
    notFound: '404 treaty_not_found',
  },
];

for (const { what, id, subject, path, list, issue, revoke, withRoles, ...kind } of KINDS) {
  suite(`an issued ${what}`, () => {
    test('has the configured label of the authority key, and its answer the configured status', async () => {
      const environment = { NA_KEY_ID: 'na-2025-q1', MESH_CREATED_STATUS: '201' };
      await using na = await startTestAuthority({ environment });
      const answer = await issue(na);
      assert.equal(answer.status, 201);
      assert.equal(answer.body.issued_by, 'na-2025-q1');
      assert.equal(answer.body.signatures[0].key_id, 'na-2025-q1');
      assert.ok(verifies(parsed(answer), na.audience));
      assert.equal((await revoke(na, answer.body[id])).status, 200);
      assert.equal(outcome(await issue(na, kind.wrong)), kind.refusal);
    });

    test('has only roles and issuers that the settings allow', async () => {
      const environment = { MESH_ROLE_PREFIXES: 'role:client', MESH_FOREIGN_ISSUER: 'refuse' };
      await using na = await startTestAuthority({ environment });
      for (const [terms, expected] of [
        [withRoles('role:client'), '200'],
        [withRoles('role:anchor'), '400 invalid_role'],
        [{}, '200'],
        [{ issuer_sovereign_id: 'alpha' }, '200'],
        [{ issuer_sovereign_id: 'gamma' }, kind.wrongIssuer],
        // The fields come first.
        [{ issuer_sovereign_id: 'gamma', validity_hours: 0 }, '400 invalid_validity_hours'],
      ] as const) {
        assert.equal(outcome(await issue(na, terms)), expected);
      }
      assert.equal((await get(na, path)).body.count, 3);
    });

    test('is not revoked by a reason that is no text, and an unknown one is 404', async () => {
      await using na = await startTestAuthority();
      const record = await issued(issue(na));
      const feed = (await get(na, '/sovereign-revocation-feed')).text;
      for (const [name, reason] of valuesExcept('a string', 'an empty string', 'null')) {
        const answer = await revoke(na, record[id], { reason });
        assert.equal(outcome(answer), '422 request_validation_failed', name);
        assert.deepEqual(answer.body.error.details.errors[0].loc, ['body', 'reason']);
      }
      for (const unknown of ['nobody', '__proto__', 'a/b', ' ', 'ü']) {
        assert.equal(outcome(await revoke(na, unknown)), kind.notFound, unknown);
        const read = await get(na, `${path}/${encodeURIComponent(unknown)}`);
        assert.equal(outcome(read), kind.notFound, unknown);
      }
      assert.equal((await get(na, `${path}/${record[id]}`)).body.status, 'active');
      assert.equal((await get(na, '/sovereign-revocation-feed')).text, feed);
      assert.deepEqual(audited(na, kind.revoked), []);
    });

    test('is found by filters that are exact and must all match; an unknown value finds nothing', async () => {
      await using na = await startTestAuthority();
      for (const [name, issuer_sovereign_id] of [
        ['a', 'alpha'],
        ['a', 'beta'],
        ['b', 'alpha'],
        ['a%', 'alpha'],
      ] as const) {
        na.clock.advance(1);
        const terms = { [subject]: name, issuer_sovereign_id, validity_hours: 1 };
        const record = await issued(issue(na, terms));
        if (name === 'b') await revoke(na, record[id]);
      }
      // What has expired is still listed as active.
      na.clock.advance(24 * HOUR);
      const all = ['a alpha', 'a beta', 'b alpha', 'a% alpha'];
      for (const [query, found] of [
        ['', all],
        ['subject=a', ['a alpha', 'a beta']],
        ['subject=a%25', ['a% alpha']],
        ['subject=%25', []],
        ['subject=A', []],
        ['issuer_sovereign_id=alpha', ['a alpha', 'b alpha', 'a% alpha']],
        ['issuer_sovereign_id=beta', ['a beta']],
        ['issuer_sovereign_id=gamma', []],
        ['status=active', ['a alpha', 'a beta', 'a% alpha']],
        ['status=revoked', ['b alpha']],
        ...['expired', 'replaced', 'suspended', 'ACTIVE', '__proto__', 'constructor'].map(
          (status) => [`status=${status}`, []] as const,
        ),
        ['subject=a&issuer_sovereign_id=alpha', ['a alpha']],
        ['subject=b&status=active', []],
        ['subject=b&status=revoked&issuer_sovereign_id=alpha', ['b alpha']],
        ['unknown=1', all],
      ] as const) {
        const { body } = await get(na, `${path}?${query.replace('subject=', `${subject}=`)}`);
        const names = body[list].map(
          (row: { readonly [member: string]: JsonObject }) =>
            `${row[what]?.[subject]} ${row[what]?.issuer_sovereign_id}`,
        );
        assert.deepEqual(names, found, query);
        assert.equal(body.count, found.length);
      }
    });
  });
}
