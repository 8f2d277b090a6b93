/**
 * Imported by files whose tests are all about LMDB itself: they look into its files, copy them or damage them. A run
 * with `MESH_TEST_STORE` leaves these files out; `LMDB_ONLY` in `test-stores.ts` does the same for single tests.
 */
export {};
