/**
 * Checks that files can be created where the settings put them. Each function throws a one-sentence error otherwise.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** `label` names the setting as it was given. */
export function demandFolder(label: string, folder: string): void {
  const found = statOf(folder);
  if (found === null) {
    throw new Error(
      `${label} needs the folder ${folder}, which does not exist; create it, or name another`,
    );
  }
  if (!found.isDirectory()) {
    throw new Error(`${label} needs the folder ${folder}, which is not a folder; name another`);
  }
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    throw new Error(
      `${label} needs the folder ${folder}, which this user cannot read and write; give the user of this process access, or name another`,
    );
  }
}

/** Checks a file that will be written and may already exist. */
export function demandFile(label: string, path: string): void {
  if (statOf(path)?.isDirectory() === true) {
    throw new Error(`${label} names ${path}, which is a folder; name a file`);
  }
  demandFolder(label, dirname(path));
}

function statOf(path: string) {
  try {
    return statSync(path);
  } catch {
    return null;
  }
}
