/**
 * Archives as the Linux kernel unpacks into its first root file system: cpio in the form "newc"
 * (Documentation/driver-api/early-userspace/buffer-format.rst of the kernel). All belongs to root, times are 0:
 * the same entries give the same bytes.
 */
export type ArchiveEntry =
  | { readonly kind: 'folder'; readonly path: string }
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly bytes: Uint8Array;
      readonly isProgram?: boolean;
    }
  | { readonly kind: 'link'; readonly path: string; readonly target: string }
  | {
      readonly kind: 'character-device';
      readonly path: string;
      readonly major: number;
      readonly minor: number;
    };

const MAGIC = '070701';
const END = 'TRAILER!!!';
const ALIGN = 4;

const MODES = {
  folder: 0o040755,
  link: 0o120777,
  'character-device': 0o020600,
  program: 0o100755,
  file: 0o100644,
} as const;

/** Paths are relative, and a folder comes before what is in it. */
export function cpioArchive(entries: readonly ArchiveEntry[]): Buffer {
  const pieces: Uint8Array[] = [];
  for (const [index, entry] of entries.entries()) {
    pieces.push(
      ...pieceOf(entry.path, index + 1, modeOf(entry), contentOf(entry), deviceOf(entry)),
    );
  }
  pieces.push(...pieceOf(END, 0, 0, NOTHING, NO_DEVICE));
  return Buffer.concat(pieces);
}

const NOTHING = new Uint8Array(0);
const NO_DEVICE = { major: 0, minor: 0 };

function modeOf(entry: ArchiveEntry): number {
  return entry.kind === 'file' && entry.isProgram === true ? MODES.program : MODES[entry.kind];
}

function contentOf(entry: ArchiveEntry): Uint8Array {
  if (entry.kind === 'file') return entry.bytes;
  return entry.kind === 'link' ? Buffer.from(entry.target) : NOTHING;
}

const deviceOf = (entry: ArchiveEntry) => (entry.kind === 'character-device' ? entry : NO_DEVICE);

function pieceOf(
  path: string,
  inode: number,
  mode: number,
  content: Uint8Array,
  device: { readonly major: number; readonly minor: number },
): Uint8Array[] {
  const name = Buffer.from(`${path}\0`);
  const [user, group, links, time, sum] = [0, 0, 1, 0, 0];
  const heldBy = NO_DEVICE;
  const fields = [
    inode,
    mode,
    user,
    group,
    links,
    time,
    content.length,
    heldBy.major,
    heldBy.minor,
    device.major,
    device.minor,
    name.length,
    sum, // Of another form of cpio.
  ];
  const header = Buffer.from(
    MAGIC + fields.map((field) => field.toString(16).padStart(8, '0')).join(''),
  );
  return [header, name, padding(header.length + name.length), content, padding(content.length)];
}

const padding = (length: number): Uint8Array => new Uint8Array(-length & (ALIGN - 1));
