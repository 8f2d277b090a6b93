declare module 'pgpass' {
  /** Calls back with the password of the first matching line of the file, or with nothing. */
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
