#!/usr/bin/env bash
# in_qemu.sh ROOT PROGRAM [ARGUMENT]...: runs a program for 64-bit Arm, and whatever programs for it are started from there, each in
# an emulator (qemu-user). ROOT is the tree of arm64 packages (bazel/arm64_root.sh).
#
# The kernel is told to start such programs so (binfmt_misc), but in namespaces of this program alone: nothing changes for others,
# and no root is needed. Linux before 6.7 has it for the whole machine only.
set -euo pipefail

readonly rule=':ferry-arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:/mnt/qemu:P'

if [[ $1 != --inside ]]; then
  exec unshare --user --map-root-user --mount "$0" --inside "$@"
fi
root=$2
shift 2
mount -t tmpfs ferry-arm64 /mnt
cat >/mnt/qemu <<TEXT
#!/bin/sh
program=\$1 name=\$2
shift 2
exec /usr/bin/qemu-aarch64 -L '$root' -0 "\$name" "\$program" "\$@"
TEXT
chmod +x /mnt/qemu
mount -t binfmt_misc ferry-arm64 /proc/sys/fs/binfmt_misc && printf %s "$rule" >/proc/sys/fs/binfmt_misc/register || {
  echo "in_qemu.sh: this kernel has binfmt_misc for the whole machine only (Linux before 6.7), so programs for Arm cannot start others" >&2
  exit 1
}
exec "$@"
