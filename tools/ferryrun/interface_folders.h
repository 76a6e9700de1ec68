// Where Ferry's libraries with the names and binary interfaces of other MPI libraries lie
// (mpi/foreign): a folder for each of them.
//
// Any thread; looks at the file system, and does not block.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace ferry::tools {

// Libraries of one binary interface.
struct InterfaceFamily {
  std::string_view name;     // of the folder, and of --abi
  std::string_view library;  // which its folder has
  // Other libraries of the same MPI, which a program may use beside Ferry's if Ferry's has each
  // function of MPI that they call; "": none.
  std::array<std::string_view, 4> originals = {};
};
// MPICH's libraries for Fortran and C++, and Debian's names of them. Libraries with
// MPICH's names may also be Intel's, which take more than MPICH's do.
inline constexpr std::array<InterfaceFamily, 2> kInterfaceFamilies = {
    {{"mpich",
      "libmpi.so.12",
      {"libmpifort.so.12", "libmpicxx.so.12", "libmpichfort.so.12", "libmpichcxx.so.12"}},
     {"openmpi", "libmpi.so.40"}}};

// Returns a family's folder beside this program, as after an installation, or where the build puts
// it; empty: there is none.
std::string FolderOf(const InterfaceFamily& family);

// Returns true if this file, of any name, lies in such a folder: it is Ferry's.
bool LiesInOwnFolder(std::string_view path);

}  // namespace ferry::tools
