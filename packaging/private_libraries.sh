# How a package brings the libraries along that Ferry's programs take from Debian's packages, for
# machines whose packages have other versions: the Python wheel and the RPM. Sourced by bash.

# elf_files FOLDER...: programs and libraries, but not the links to them.
elf_files() {
  find "$@" -type f -exec sh -c 'head -c 4 "$1" | grep -q ELF' _ {} \; -print
}

# What every machine has that is new enough; else the loader's name, path and address.
libraries_of() {
  ldd "$@" | awk '$2 == "=>" && $3 ~ "^/" { print $3 }' |
    grep -vE '/(libc|libm|libstdc\+\+|libgcc_s|libpthread|libdl|librt)\.so[^/]*$' | sort -u
}

# private_libraries LIB DOC FILE...: copies what these files need of Debian's libraries into
# LIB/ferry/private, and the licences into DOC/private.
private_libraries() {
  local library package private=$1/ferry/private doc=$2/private
  shift 2
  mkdir -p "$private" "$doc"
  while read -r library; do
    [[ ! ${library##*/} =~ ^lib(ferry|mpi) ]] || continue  # Ferry's own
    install -m 644 "$(realpath "$library")" "$private/${library##*/}"
    patchelf --set-rpath '$ORIGIN' "$private/${library##*/}"
    package=$(dpkg-query -S "*/$(uname -m)-linux-gnu/$(basename "$(realpath "$library")")" | cut -d: -f1 | head -n 1)
    dpkg-query -W -f '${Package} ${Version}\n' "$package" >>"$doc/packages"
    install -m 644 "/usr/share/doc/$package/copyright" "$doc/$package.copyright"
  done < <(libraries_of "$@")
  sort -u -o "$doc/packages" "$doc/packages"
}

# make_relocatable LIB FILE...: a file's libraries lie beside it, in LIB, and among the private ones.
make_relocatable() {
  local file above lib=$1
  shift
  for file in "$@"; do
    above=$(realpath --relative-to="${file%/*}" "$lib")
    patchelf --set-rpath "\$ORIGIN:\$ORIGIN/$above:\$ORIGIN/$above/ferry/private" "$file"
    strip --strip-unneeded --remove-section=.comment "$file"
  done
}

# newest_needed LIBRARY FILE...: the newest version of a library's symbols that the files need, of
# those that it calls GLIBC, GLIBCXX or the like: "2.35".
newest_needed() {
  local library=$1
  shift
  objdump -T "$@" | grep -oE "\*UND\*.*\(?${library}_[0-9.]+" | sed "s/.*${library}_//" | sort -uV | tail -n 1
}
