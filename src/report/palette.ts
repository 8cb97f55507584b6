/** Colours that read on white and on near-black, told apart by people who cannot tell red from green. */
export const SERIES_COLOURS = [
  '#2f7ed8',
  '#e0702f',
  '#2a9d78',
  '#b04fc4',
  '#c2a000',
  '#d1495b',
  '#5f6caf',
  '#6b7280',
] as const;

/** Answers in one picture: more, nobody tells apart. */
export const MAX_PLOTTED = SERIES_COLOURS.length;

export const LIGHT = {
  ink: '#1b1f24',
  faint: '#57606a',
  paper: '#ffffff',
  edge: '#d0d7de',
} as const;
export const DARK = {
  ink: '#e6edf3',
  faint: '#9da7b3',
  paper: '#0f141a',
  edge: '#30363d',
} as const;

/** Fonts by name: a renderer without a browser does not know "sans-serif". */
export const FONT_FAMILY = "'DejaVu Sans', 'Liberation Sans', 'Noto Sans', Arial, sans-serif";
