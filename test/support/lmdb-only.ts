/**
 * Imported by files whose tests are all about LMDB itself, because they read, copy or damage its files. A run with
 * `MESH_TEST_STORE` skips these files; `LMDB_ONLY` in `test-stores.ts` does the same for single tests.
 */
export {};
