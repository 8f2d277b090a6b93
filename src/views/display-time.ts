/** A canonical datetime for people: `YYYY-MM-DD HH:MM UTC`. */
export function displayTime(datetime: string): string {
  return `${datetime.slice(0, 10)} ${datetime.slice(11, 16)} UTC`;
}
