/** Caches a result computed from a value for as long as the value is in use. */
export function cachedBySource<Source extends object, Made>(make: (source: Source) => Made) {
  const kept = new WeakMap<Source, Made>();
  return (source: Source): Made => {
    const known = kept.get(source);
    if (known !== undefined) return known;
    const made = make(source);
    kept.set(source, made);
    return made;
  };
}
