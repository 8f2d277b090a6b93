/** Names of backup files. */

/** Files of other names in a folder of backups are left alone. */
export const SUFFIX = '.backup';

/** Names of files that are not complete end so. */
export const PARTIAL = '.partial';
