/** The state has the layout of another version of the program. The message is a sentence that says what to do. */
export class OtherSchema extends Error {
  constructor(place: string, found: number, read: number) {
    super(
      `${place} has schema version ${found}; this program reads version ${read}: start the program that wrote it`,
    );
  }
}
