/**
 * The whole configuration space of one endpoint against a table worked out from the specification's
 * register figures: what each register holds after reset, and what it reads after software wrote
 * all ones. The second column is 0 in write-1-to-clear and read-only zero bits.
 */
import { expect, it } from 'vitest';
import { ENDPOINT_PCIE } from '#testkit/endpoint-pcie';
import { AdvancedErrorReporting } from './aer.ts';
import { Bars } from './bar.ts';
import { ConfigSpace } from './config-space.ts';
import { addDeviceSerialNumber } from './dsn.ts';
import { Msi } from './msi.ts';
import { Msix } from './msix.ts';
import { PcieCapability } from './pcie-capability.ts';
import { PowerManagement } from './pm.ts';
import { addSecondaryPcie } from './secondary-pcie.ts';

const GOLDEN = `
000 56781234 56781234 Device 5678, Vendor 1234
004 00100000 00100546 Status: list. Command: MSE 1, BME 2, parity 6, SERR 8, INTx disable 10
008 12000001 12000001 Class 120000, revision 01
00c 00000000 000000ff Header type 0, cache line size
010 00000000 fffff000 BAR0: 4 KiB, 32 bit
014 00000000 00000000 no BAR1
018 0000000c f000000c BAR2: 256 MiB, 64 bit, prefetchable
01c 00000000 ffffffff BAR2 upper
020 00000000 00000000 no BAR4
024 00000000 00000000 no BAR5
02c 00011234 00011234 Subsystem 0001, vendor 1234
030 00000000 00000000 no expansion ROM
034 00000040 00000040 Capabilities pointer
03c 00000000 000000ff No INTx pin, interrupt line
040 00034801 00034801 PM: version 3, no D1, D2, PME
044 00000008 0000000b PMCSR: No_Soft_Reset, PowerState
048 01846005 01f56005 MSI: 4 vectors (010b << 1), 64 bit, masking; enable, MME
04c 00000000 fffffffc Message Address
050 00000000 ffffffff Message Upper Address
054 00000000 0000ffff Message Data
058 00000000 0000000f Mask Bits
05c 00000000 00000000 Pending Bits
060 00029c10 00029c10 PCIe: version 2, endpoint
064 00008022 00008022 DevCap: MPS 512 (010b), extended tag, role-based
068 00002910 000079ff DevCtl: RO, ext tag, no snoop, MRRS 512 (010b)
06c 00400103 00400103 LnkCap: 8 GT/s (3), x16, ASPM optionality
070 01030000 010300cb LnkSta: 8 GT/s, x16. LnkCtl: ASPM, RCB, clock, synch
074 00000000 00000000 no slot
078 00000000 00000000 no slot
07c 00000000 00000000 no root
080 00000000 00000000 no root
084 00030010 00030010 DevCap2: timeout not programmable, may be off, 10-bit completer, requester
088 00000000 00001310 DevCtl2: timeout disable, IDO request, completion, 10-bit tags
08c 0000000e 0000000e LnkCap2: 2.5, 5, 8 GT/s
090 001e0003 001e000f LnkSta2: equalized, phases 1 to 3. LnkCtl2: target 8 GT/s
094 00000000 00000000 no slot
098 00000000 00000000 no slot
09c 00070011 c0070011 MSI-X: 8 vectors (N − 1); enable, function mask
0a0 00000800 00000800 Table: BAR0 + 800
0a4 00000c00 00000c00 PBA: BAR0 + c00
100 12c20001 12c20001 AER version 2
104 00000000 00000000 Uncorrectable status
108 00400000 005ff030 Uncorrectable mask: internal 22
10c 00462030 005ff030 Severity: 4, 5, 13, 17, 18, 22
110 00000000 00000000 Correctable status
114 0000e000 0000f1c1 Correctable mask: 13, 14, 15
118 000000a0 000001e0 ECRC capable; enables
11c 00000000 00000000 Header log
120 00000000 00000000
124 00000000 00000000
128 00000000 00000000
12c 13810003 13810003 DSN version 1
130 89abcdef 89abcdef
134 01234567 01234567
138 00010019 00010019 Secondary PCI Express version 1, last
13c 00000000 00000000 LnkCtl3
140 00000000 00000000 Lane errors
144 04000400 04000400 Lanes 1, 0: upstream port transmitter preset P4
148 04000400 04000400
14c 04000400 04000400
150 04000400 04000400
154 04000400 04000400
158 04000400 04000400
15c 04000400 04000400
160 04000400 04000400
`;

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');

it('an endpoint with every capability looks to software as the specification draws it', () => {
  const config = new ConfigSpace({
    vendorId: 0x1234,
    deviceId: 0x5678,
    revisionId: 1,
    classCode: 0x120000,
    subsystemId: 1,
  });
  new Bars(config, [
    { index: 2, sizeBytes: 2 ** 28, is64Bit: true, prefetchable: true },
    { index: 0, sizeBytes: 4096, is64Bit: false, prefetchable: false },
  ]);
  new PowerManagement(config, { noSoftReset: true });
  new Msi(config, { vectors: 4, perVectorMasking: true });
  new PcieCapability(config, ENDPOINT_PCIE);
  new Msix(config, { vectors: 8, tableBar: 0, tableOffset: 0x800, pbaBar: 0, pbaOffset: 0xc00 });
  new AdvancedErrorReporting(config, { ecrc: true });
  addDeviceSerialNumber(config, 0x0123_4567, 0x89ab_cdef);
  addSecondaryPcie(config, 16, false);

  const rows = GOLDEN.trim()
    .split('\n')
    .map((line) => line.split(' ').slice(0, 3));
  const listed = new Set(rows.map(([register]) => Number.parseInt(register as string, 16)));
  const dump = rows.map(([name]) => {
    const register = Number.parseInt(name as string, 16);
    const before = config.read32(register);
    config.write(register, 0xffff_ffff, 15);
    return [name, hex(before, 8), hex(config.read32(register), 8)];
  });
  expect(dump).toEqual(rows);

  // Nothing else is there.
  for (let register = 0; register < 4096; register += 4) {
    if (!listed.has(register)) expect([register, config.read32(register)]).toEqual([register, 0]);
  }
});
