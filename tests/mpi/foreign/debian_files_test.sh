#!/bin/bash
# Debian's h5py, HDF5, NetCDF and PnetCDF, as they are, write files on Ferry by its libmpi.so.40.
# A library that is not installed is left out; without h5py, or mpi4py, there is nothing to run.
set -euo pipefail
source tests/support/skip.sh

readonly libraries=/usr/lib/x86_64-linux-gnu

fail() {
  echo "FAILED: $*"
  exit 1
}

/usr/bin/python3 -c "import h5py._debian_h5py_mpi, mpi4py" 2>/dev/null ||
  skip "h5py for MPI is not there: apt-get install python3-h5py-mpi"
names=(hdf5)
[[ -e $libraries/libnetcdf_mpi.so.19 ]] && names+=(netcdf)
[[ -e $libraries/libpnetcdf.so.0d ]] && names+=(pnetcdf)

work=$(mktemp -d /tmp/ferry-files-XXXXXX)
trap 'rm -rf "$work"' EXIT
for flags in "-n 1" "-n 2" "-n 5" "-n 4 --nodes 2" "-n 3 --nodes 3"; do
  echo "== ferryrun $flags: ${names[*]}"
  rm -rf "$work/files"
  mkdir "$work/files"
  # shellcheck disable=SC2086  # words of their own
  HOME=$work tools/ferryrun/ferryrun --private --no-label --timeout 300 $flags -- \
    /usr/bin/python3 -B tests/mpi/foreign/debian_files.py "$work/files" "${names[@]}" \
    >"$work/out" 2>"$work/err" || fail "$(cat "$work/out" "$work/err")"
  diff <(printf '%s on Ferry\n' "${names[@]}") "$work/out" || fail "$(cat "$work/err")"
  [[ ! -s $work/err ]] || fail "$(cat "$work/err")"
  (($(ls "$work/files" | wc -l) == ${#names[@]})) || fail "files: $(ls "$work/files")"
done
