#include "tools/ferryrun/binary_interface.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "common/own_program.h"
#include "tools/ferryrun/foreign_library.h"
#include "tools/ferryrun/rank_process.h"

namespace ferry::tools {
namespace {

constexpr char kVariable[] = "FERRY_ABI";
constexpr char kPath[] = "LD_LIBRARY_PATH";
constexpr char kLibrary[] = "libmpi.so.12";

// The folder of the libraries beside this program, as after an installation, or where the build
// puts it; empty: none.
std::string Folder() {
  const std::filesystem::path own = OwnDirectory();
  for (const char* place :
       {"../lib/ferry/mpich", "../lib/x86_64-linux-gnu/ferry/mpich", "../../mpi/foreign/mpich"}) {
    const std::string folder = (own / place).lexically_normal();
    if (access((folder + "/" + kLibrary).c_str(), R_OK) == 0) {
      return folder;
    }
  }
  return "";
}

// Which MPI library a program names.
enum class Needed { kNone, kOurs, kOther };

Needed WhatIsNeeded(const std::string& program) {
  Needed found = Needed::kNone;
  std::istringstream names(NeededLibraries(program));
  for (std::string name; std::getline(names, name);) {
    if (name == kLibrary || name == "libmpich.so.12") {
      found = found == Needed::kNone ? Needed::kOurs : found;
    } else if (ParseMaps(name).is_certain() || name.starts_with("libmpicxx.so")) {
      found = Needed::kOther;  // also MPICH's library for Fortran or C++, which wants MPICH itself
    }
  }
  return found;
}

bool GetsPath(std::string_view wanted, Needed needed) {
  return wanted == "mpich" || ((wanted.empty() || wanted == "auto") && needed != Needed::kOther);
}

}  // namespace

Status ChooseInterface(const std::string& program, std::vector<std::string>* environment) {
  const std::string wanted = ValueOf(kVariable, *environment);
  if (!wanted.empty() && wanted != "auto" && wanted != "native" && wanted != "mpich") {
    return {ErrorCode::kInvalidArgument,
            std::string(kVariable) + "=" + wanted + ": it is one of " + std::string(kInterfaces)};
  }
  const std::string folder = Folder();
  if (wanted == "mpich" && folder.empty()) {
    return {ErrorCode::kNotFound, "--abi=mpich: no " + std::string(kLibrary) +
                                      " in ../lib/ferry/mpich, seen from " + OwnDirectory() +
                                      ": build or install it"};
  }
  if (!folder.empty() && GetsPath(wanted, WhatIsNeeded(program))) {
    const std::string users = ValueOf(kPath, *environment);
    SetVariables({std::string(kPath) + "=" + (users.empty() ? folder : folder + ":" + users)},
                 environment);
  }
  return {};
}

bool IsServed(const std::string& program, const std::vector<std::string>& environment) {
  const Needed needed = WhatIsNeeded(program);
  return needed == Needed::kOurs && GetsPath(ValueOf(kVariable, environment), needed) &&
         !Folder().empty();
}

}  // namespace ferry::tools
