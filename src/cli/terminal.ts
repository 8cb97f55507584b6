/** What stdout is like. */

export interface Terminal {
  readonly columns: number;
  readonly colours: boolean;
}

const USUAL_COLUMNS = 80;

/** Of stdout; elsewhere than on a terminal `$COLUMNS`, or 80. */
export function terminal(): Terminal {
  const { columns, isTTY } = process.stdout;
  const asked = Number(process.env['COLUMNS']);
  return {
    columns: columns ?? (Number.isInteger(asked) && asked > 0 ? asked : USUAL_COLUMNS),
    // `undefined` elsewhere than on a terminal, which would leave the choice to $CI and $FORCE_COLOR.
    colours: Boolean(isTTY) && (process.env['NO_COLOR'] ?? '') === '',
  };
}
