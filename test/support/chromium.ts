/** Where Chromium is: at `CHROMIUM_PATH`, or under one of its names on the path. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** A path, or null when there is none. */
export function findChromium({ CHROMIUM_PATH, PATH = '' }: NodeJS.ProcessEnv): string | null {
  const named = PATH.split(delimiter).flatMap((folder) => NAMES.map((name) => join(folder, name)));
  const candidates = CHROMIUM_PATH === undefined ? named : [CHROMIUM_PATH];
  return candidates.find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
