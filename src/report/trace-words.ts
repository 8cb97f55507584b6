/** Words that answers about a trace share: what it is, where it comes from, whether it fits. */
import * as figures from './figures.ts';
import { paragraph, plainText, withoutMiddle } from './text-width.ts';

export interface ShownTrace {
  /** As the user named it. */
  readonly file: string;
  readonly format: 'kineto' | 'nsys' | 'nvprof' | 'tensorflow' | 'synthetic';
  readonly gpus: readonly string[];
  readonly spanNs: number;
}

const FORMAT_WORDS: Readonly<Record<ShownTrace['format'], string>> = {
  kineto: 'PyTorch profiler (Kineto)',
  nsys: 'Nsight Systems',
  nvprof: 'nvprof',
  tensorflow: 'TensorFlow timeline',
  synthetic: 'SYNTHETIC: a made-up trace, not a measurement',
};

const MAX_GPU_KINDS = 2;

/** Where it comes from and what it spans: `PyTorch profiler (Kineto), Tesla V100, 730 ms`. */
export function originWords({ format, gpus, spanNs }: Omit<ShownTrace, 'file'>): string {
  const kinds = [...new Set(gpus)];
  const shown = kinds.slice(0, MAX_GPU_KINDS).join(', ');
  const more = kinds.length > MAX_GPU_KINDS ? ` and ${kinds.length - MAX_GPU_KINDS} more` : '';
  const gpu = format === 'synthetic' || kinds.length === 0 ? [] : [`${shown}${more}`];
  return [FORMAT_WORDS[format], ...gpu, figures.duration(spanNs)].join(', ');
}

/** The file, and below it where it comes from; no line is wider than `room`. */
export function originLines(trace: ShownTrace, room: number): string[] {
  return [
    withoutMiddle(plainText(trace.file), room),
    ...paragraph(plainText(originWords(trace)), room, '', '  '),
  ];
}

/** In the title of a picture: the file without its folder, called synthetic where it is. */
export function titleWords({ file, format }: Pick<ShownTrace, 'file' | 'format'>): string {
  const name = file.slice(file.lastIndexOf('/') + 1);
  return `${withoutMiddle(plainText(name), 48)}${format === 'synthetic' ? ' (SYNTHETIC)' : ''}`;
}

/** In the legend of a picture. */
export function legendName(name: string): string {
  return withoutMiddle(plainText(name), 28);
}

export type Within = 'yes' | 'no' | 'unsure';

/** Whether an overhead is within its budget. */
export function verdictWord(within: Within): string {
  return { yes: 'fits', no: 'does not fit', unsure: 'unsure' }[within];
}

/** The tone of a page for it. */
export function verdictTone(within: Within): 'good' | 'bad' | 'unsure' {
  return ({ yes: 'good', no: 'bad', unsure: 'unsure' } as const)[within];
}
