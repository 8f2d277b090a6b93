/** The state has the layout of another version of the program. The message is a sentence, with the command where one helps. */
export class OtherSchema extends Error {}
