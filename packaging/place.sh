# Puts Ferry's files where they belong: for `./dev install` and the packages. Sourced by bash.

# ferry_version: what the programs call themselves.
ferry_version() { sed -n 's/.*kFerryVersion\[\] = "\(.*\)";/\1/p' common/version.h; }

# fill_in FILE FOLDER NAME=VALUE...: installs a text file with its @NAME@s replaced. Of its mode only
# one bit is the file's own; the others are of the umask under which it was checked out.
fill_in() {
  local file=$1 folder=$2 mode=644 pair script=()
  shift 2
  for pair in "$@"; do script+=(-e "s|@${pair%%=*}@|${pair#*=}|g"); done
  mkdir -p "$folder"
  sed "${script[@]}" "$file" >"$folder/${file##*/}"
  [[ ! -x $file ]] || mode=755
  chmod "$mode" "$folder/${file##*/}"
}

# place BUILT ROOT: puts what Bazel has built in BUILT, and files of the working directory, below
# ROOT, where the associative array `at` says. Programs are told their places without ROOT.
place() {
  local built=$1 root=$2 version major name so=$1/client/libferry.so.0 mpi=libmpi_abi.so.1
  local shmem=libferry_shmem.so.0
  version=$(ferry_version)
  major=${version%%.*}
  readelf -d "$so" | grep -q "soname: \[libferry.so.$major\]" || {
    echo "$so does not have the SONAME libferry.so.$major" >&2
    return 1
  }
  readelf -d "$built/mpi/$mpi" | grep -q "soname: \[$mpi\]" || {
    echo "$built/mpi/$mpi does not have that SONAME" >&2
    return 1
  }
  install -Dt "$root${at[sbin]}" "$built/daemon/ferryd"
  install -Dt "$root${at[libexec]}" "$built/daemon/ferry-worker" \
    "$built"/tools/tune/{ferry-meter,ferry-kernel-meter}
  install -Dt "$root${at[bin]}" "$built"/tools/{ferryctl/ferryctl,ferryrun/ferryrun,ferrysim/ferrysim}
  install -D -m 644 "$so" "$root${at[lib]}/libferry.so.$version"
  ln -sf "libferry.so.$version" "$root${at[lib]}/libferry.so.$major"
  ln -sf "libferry.so.$major" "$root${at[lib]}/libferry.so"
  install -D -m 644 -t "$root${at[lib]}/ferry" \
    "$built"/client/direct/libferry_direct{,_ofi}.so "$built/client/malloc/libferry_malloc.so" \
    "$built/mpi/libferry_queues.so"
  install -D -m 644 -t "$root${at[include]}/ferry" \
    include/ferry/{device_ring,ferry,one_sided,stream}.{h,hpp} include/ferry/halo.h
  install -D -m 644 -t "$root${at[include]}/ferry/device" \
    include/ferry/device/*.h
  for name in partitioned shmem; do
    install -D -m 644 -t "$root${at[include]}/ferry/device/$name" \
      include/ferry/device/"$name"/*.h
  done
  install -D -m 644 -t "$root${at[include]}/ferry/halo" include/ferry/halo/*.h
  # The number is that of MPI's binary interface; 0 is what some libraries call its version 1.
  install -D -m 644 "$built/mpi/$mpi" "$root${at[lib]}/$mpi.0"
  ln -sf "$mpi.0" "$root${at[lib]}/$mpi"
  ln -sf "$mpi" "$root${at[lib]}/libmpi_abi.so.0"
  ln -sf "$mpi" "$root${at[lib]}/libmpi_abi.so"
  install -D -m 644 -t "$root${at[include]}/ferry/mpi" include/ferry/mpi/{mpi,mpix}.h
  install -D -m 644 -t "$root${at[include]}/ferry/mpi/ferry_mpi" \
    include/ferry/mpi/ferry_mpi/*.h
  # The same for programs of MPICH's binary interface, in a folder of its own: programs that look
  # there find it in place of MPICH's. Debian's MPICH has the second name; mpi4py looks for the third.
  install -D -m 644 "$built/mpi/foreign/mpich/libmpi.so.12" "$root${at[lib]}/ferry/mpich/libmpi.so.12"
  ln -sf libmpi.so.12 "$root${at[lib]}/ferry/mpich/libmpich.so.12"
  ln -sf libmpi.so.12 "$root${at[lib]}/ferry/mpich/libmpi.so"
  # The same for those of Open MPI's, with Fortran's and C++'s; the others are empty.
  install -D -m 644 -t "$root${at[lib]}/ferry/openmpi" \
    "$built"/mpi/foreign/openmpi/lib{mpi,mpi_cxx,mpi_mpifh,mpi_usempif08,mpi_usempi_ignore_tkr,open-pal,open-rte}.so.40 \
    "$built/mpi/foreign/openmpi/libopen-pal.so.80"
  # Fortran's over it, with the modules of gfortran and the sources of them for other compilers.
  install -D -m 644 "$built/mpi/libmpifort_abi.so.1" "$root${at[lib]}/libmpifort_abi.so.1"
  ln -sf libmpifort_abi.so.1 "$root${at[lib]}/libmpifort_abi.so"
  install -D -m 644 -t "$root${at[include]}/ferry/mpi" "$built/mpi/fortran/include/mpif.h"
  install -D -m 644 -t "$root${at[lib]}/ferry/fortran/gfortran-mod-15" \
    "$built"/mpi/fortran/include/{ferry_mpi_types,ferry_mpix,mpi,mpi_f08}.mod
  install -D -m 644 -t "$root${at[share]}/ferry/fortran" \
    "$built"/mpi/fortran/include/{ferry_mpix,ferry_mpix_addresses,mpi,mpi_f08,mpi_f08_addresses}.f90
  install -D -m 644 "$built/shmem/$shmem" "$root${at[lib]}/$shmem"
  ln -sf "$shmem" "$root${at[lib]}/libferry_shmem.so"
  for name in "" ferry_shmem mpp; do
    install -D -m 644 -t "$root${at[include]}/ferry/shmem/$name" \
      "$built/shmem/api/include/$name"/*.h
  done
  ln -sf ferryrun "$root${at[bin]}/oshrun"
  for name in ferrycc ferrycxx ferryfc oshcc oshc++; do
    fill_in "tools/wrappers/$name" "$root${at[bin]}" VERSION="$version" LIB="${at[lib]}" \
      INCLUDE="${at[include]}" SHARE="${at[share]}" RPATH="${at[rpath]:+${at[lib]}}"
  done
  for name in ferryrun ferryctl ferrysim; do
    mkdir -p "$root${at[share]}"/{bash-completion/completions,fish/vendor_completions.d} "$root${at[zsh]}"
    "$built/tools/$name/$name" --completion bash >"$root${at[share]}/bash-completion/completions/$name"
    "$built/tools/$name/$name" --completion zsh >"$root${at[zsh]}/_$name"
    "$built/tools/$name/$name" --completion fish \
      >"$root${at[share]}/fish/vendor_completions.d/$name.fish"
  done
  if [[ -n ${at[modules]:-} ]]; then
    fill_in packaging/modulefile/ferry "$root${at[modules]}/ferry" VERSION="$version" \
      PREFIX="${at[prefix]}" BIN="${at[bin]}" LIB="${at[lib]}" MAN="${at[man]}"
    mv "$root${at[modules]}/ferry/ferry" "$root${at[modules]}/ferry/$version"
  fi
  # Names that people type, in a folder to put first in PATH.
  mkdir -p "$root${at[lib]}/ferry/bin"
  for name in mpirun mpiexec; do
    ln -sfr "$root${at[bin]}/ferryrun" "$root${at[lib]}/ferry/bin/$name"
  done
  ln -sfr "$root${at[bin]}/ferrycc" "$root${at[lib]}/ferry/bin/mpicc"
  for name in mpifort mpif90 mpif77; do
    ln -sfr "$root${at[bin]}/ferryfc" "$root${at[lib]}/ferry/bin/$name"
  done
  for name in mpicxx mpic++ mpiCC; do
    ln -sfr "$root${at[bin]}/ferrycxx" "$root${at[lib]}/ferry/bin/$name"
  done
  install -D -m 644 -t "$root${at[etc]}" config/ferryd.toml config/slurm/slurm.conf
  python3 packaging/installed_docs.py . "$root${at[doc]}"
  for name in examples/*/*; do
    [[ $name == */BUILD ]] || install -D -m 644 "$name" "$root${at[doc]}/$name"
  done
  install -D -m 644 packaging/examples.mk "$root${at[doc]}/examples/Makefile"
  for name in docs/man/*.[1-8] "$built/docs/man/ferryd.toml.5"; do
    install -D -m 644 -t "$root${at[man]}/man${name##*.}" "$name"
  done
  fill_in config/ferryd.service "$root${at[unit]}" \
    FERRYD="${at[sbin]}/ferryd" CONFIG="${at[etc]}/ferryd.toml"
  fill_in config/ferry-web.service "$root${at[user_unit]}" FERRYCTL="${at[bin]}/ferryctl"
  for name in functions prolog epilog task-prolog; do
    fill_in "config/slurm/$name" "$root${at[libexec]}/slurm" \
      FERRYD="${at[sbin]}/ferryd" FERRYCTL="${at[bin]}/ferryctl" ETC="${at[etc]}"
  done
  install -D -m 644 -t "$root${at[share]}/ferry/monitoring" \
    packaging/monitoring/{ferry_alerts.yml,ferry_dashboard.json}
  for name in ferry ferry-mpi ferry-mpi-fort; do
    fill_in "config/$name.pc" "$root${at[lib]}/pkgconfig" VERSION="$version" \
      LIB="${at[lib]}" INCLUDE="${at[include]}" RPATH="${at[rpath]}"
  done
}
