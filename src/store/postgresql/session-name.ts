/** The names of this program's sessions, as shown in `pg_stat_activity`. */
export const SESSION_NAME = 'mesh-na';

/** The session in which an instance follows the state. */
export const STANDBY_SESSION = `${SESSION_NAME} standby`;
