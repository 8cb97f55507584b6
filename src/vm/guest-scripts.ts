/**
 * What runs in the guest. `init` loads the drivers, so that a function finds its own as soon as it is there,
 * and gives a shell on the serial console. Where the kernel's command line has `dxpu.control=PORT`, commands are
 * taken on a serial port as well; `testkit/vm/guest-control.ts` is the other end of it.
 */

/** Of the kernel's command line: the port of the control channel. */
export const CONTROL_PARAMETER = 'dxpu.control=ttyS1';

/** The first line of the control channel, each time the guest has come up. */
export const CONTROL_READY = 'dxpu-control ready';

/** On the console, before the first shell. */
export const CONSOLE_READY = 'dxpu: the guest is up';

export const INIT_SCRIPT = `#!/bin/sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root TERM=\${TERM:-linux}
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
hostname guest
while read -r name; do
  insmod /lib/modules/$name.ko || echo "dxpu: no driver $name"
done </etc/modules
for word in $(cat /proc/cmdline); do
  case $word in
    dxpu.control=*) setsid control /dev/\${word#dxpu.control=} & ;;
  esac
done
cd /root
echo "${CONSOLE_READY}"
# What ends is started anew: the shell of a console that was closed, for one.
while :; do
  setsid cttyhack sh
done
`;

/**
 * A request is a line: its number, and the command in base64. The answer is a line, the number, the exit
 * status and how many bytes were printed, and these bytes.
 */
export const CONTROL_SCRIPT = `#!/bin/sh
stty -F $1 raw -echo || exit
exec <$1 >$1
out=/run/control.out
echo "${CONTROL_READY}"
while read -r number command; do
  echo "$command" | base64 -d >/run/control.sh
  sh /run/control.sh >$out 2>&1 </dev/null
  echo "$number $? $(stat -c %s $out)"
  cat $out
done
`;
