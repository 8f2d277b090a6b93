/** Whether files can be made where the settings want them. Each throws one clear sentence. */
import { accessSync, constants, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** `label` is how the setting was given. */
export function demandFolder(label: string, folder: string): void {
  const found = statOf(folder);
  if (found === null) {
    throw new Error(
      `${label} needs the folder ${folder}, which does not exist; make it, or name another`,
    );
  }
  if (!found.isDirectory()) {
    throw new Error(`${label} needs the folder ${folder}, which is no folder; name another`);
  }
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    throw new Error(
      `${label} needs the folder ${folder}, which this user cannot read and write; give it to the user of this process, or name another`,
    );
  }
}

/** A file that is written, which may be there already. */
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
