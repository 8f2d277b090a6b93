declare module 'pgpass' {
  /** Calls back with the password from the first matching line of the file; undefined if there is none. */
  function pgpass(
    connection: {
      readonly host: string;
      readonly port: number;
      readonly database: string;
      readonly user: string;
    },
    found: (password: string | undefined) => void,
  ): void;
  export = pgpass;
}
