#include "tools/ferryrun/binary_interface.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "common/own_program.h"
#include "tools/ferryrun/foreign_library.h"
#include "tools/ferryrun/interface_folders.h"
#include "tools/ferryrun/linked_libraries.h"
#include "tools/ferryrun/rank_process.h"

namespace ferry::tools {
namespace {

constexpr char kVariable[] = "FERRY_ABI";
constexpr char kPath[] = "LD_LIBRARY_PATH";
constexpr char kPreload[] = "LD_PRELOAD";

// A program of Open MPI may need this, and some scripts run such programs: without it, the folder
// is not for programs of which nothing is known.
constexpr std::string_view kFortranOfOpenMpi = "libmpi_mpifh.so.40";

bool Has(const std::string& folder, std::string_view library) {
  return !folder.empty() && access((folder + "/" + std::string(library)).c_str(), R_OK) == 0;
}

// A library that belongs to an MPI library, or is one.
bool IsOfMpi(const std::string& name) {
  constexpr std::string_view kOthers[] = {"libmpicxx.so", "libopen-rte.so", "libopen-pal.so"};
  return ParseMaps(name).any() ||
         std::any_of(std::begin(kOthers), std::end(kOthers),
                     [&name](std::string_view one) { return name.starts_with(one); });
}

// The MPI libraries that a program and its libraries need.
struct Needed {
  std::string folder;     // of the family that has it; empty: none
  bool is_other = false;  // also, or only, what no family has
  // Ferry's libraries in place of which the program's DT_RPATH would find others, by spaces.
  std::string preloaded;
};

// A name that belongs to MPI, or to what is inside of a library of it.
bool IsNameOfMpi(const std::string& name) {
  constexpr std::string_view kBeginnings[] = {"MPI", "PMPI", "QMPI", "impi", "mpir"};
  return std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [&name](std::string_view one) { return name.starts_with(one); });
}

// Returns true if an original library finds all that it takes from MPI's in Ferry's `library`. That
// of another build or vendor may call more, and would end where it does.
bool RunsOn(const std::string& original, const std::string& library) {
  static auto& known = *new std::map<std::pair<std::string, std::string>, bool>();
  const auto [place, is_new] = known.try_emplace({original, library});
  if (is_new) {
    const std::set<std::string> ours = NamesDefined(library);
    const std::set<std::string> taken = NamesTaken(original);
    place->second =
        !taken.empty() && std::all_of(taken.begin(), taken.end(), [&](const auto& name) {
          return !IsNameOfMpi(name) || ours.contains(name);
        });
  }
  return place->second;
}

Needed WhatIsNeeded(const std::string& program, const std::string& library_path) {
  // All ranks of a job mostly run one program.
  static auto& known = *new std::map<std::pair<std::string, std::string>, Needed>();
  const auto [place, is_new] = known.try_emplace({program, library_path});
  Needed& found = place->second;
  if (!is_new) {
    return found;
  }
  for (const auto& [name, path, is_by_rpath] : FindNeeded(program, library_path, IsOfMpi)) {
    bool is_there = false;
    for (const InterfaceFamily& family : kInterfaceFamilies) {
      const std::string folder = FolderOf(family);
      if (folder.empty()) {
        continue;
      }
      const bool has = Has(folder, name);
      const bool goes_with = std::find(family.originals.begin(), family.originals.end(), name) !=
                                 family.originals.end() &&
                             RunsOn(path, folder + "/" + std::string(family.library));
      if (has || goes_with) {
        found.folder = found.folder.empty() ? folder : found.folder;
        is_there = true;
      }
      if (has && is_by_rpath && !LiesInOwnFolder(path) && folder.find(' ') == folder.npos) {
        found.preloaded += (found.preloaded.empty() ? "" : " ") + folder + "/" + name;
      }
    }
    found.is_other |= !is_there;
  }
  return found;
}

// The folders of the libraries that a program gets, with colons between them.
std::string FoldersFor(const std::string& program, const std::vector<std::string>& environment) {
  const std::string wanted = ValueOf(kVariable, environment);
  for (const InterfaceFamily& family : kInterfaceFamilies) {
    if (wanted == family.name) {
      return FolderOf(family);
    }
  }
  if (wanted == "native") {
    return "";
  }
  const Needed needed = WhatIsNeeded(program, ValueOf(kPath, environment));
  if (needed.is_other || !needed.folder.empty()) {
    return needed.is_other ? "" : needed.folder;
  }
  std::string folders;
  for (const InterfaceFamily& family : kInterfaceFamilies) {
    const std::string folder = FolderOf(family);
    if (!folder.empty() && (family.name != "openmpi" || Has(folder, kFortranOfOpenMpi))) {
      folders += (folders.empty() ? "" : ":") + folder;
    }
  }
  return folders;
}

// Rank, size, rank and number of ranks of this node, after `beginning`.
std::vector<std::string> PlaceInJob(const std::string& beginning,
                                    const std::vector<std::string>& environment) {
  std::vector<std::string> variables;
  for (const auto& [theirs, ours] :
       {std::pair{"RANK", "PMI_RANK"}, std::pair{"SIZE", "PMI_SIZE"},
        std::pair{"LOCAL_RANK", "MPI_LOCALRANKID"}, std::pair{"LOCAL_SIZE", "MPI_LOCALNRANKS"}}) {
    variables.push_back(beginning + theirs + "=" + ValueOf(ours, environment));
  }
  return variables;
}

// The variables that MVAPICH sets. Other libraries of MPICH's family set PMI_RANK and its like.
std::vector<std::string> VariablesOfMpich(const std::vector<std::string>& environment) {
  return PlaceInJob("MV2_COMM_WORLD_", environment);
}

std::vector<std::string> VariablesOfOpenMpi(const std::vector<std::string>& environment) {
  std::vector<std::string> variables = PlaceInJob("OMPI_COMM_WORLD_", environment);
  variables.push_back("OMPI_COMM_WORLD_NODE_RANK=" + ValueOf("MPI_LOCALRANKID", environment));
  // The universe is at least the job.
  const auto number = [&environment](const char* name) {
    return std::strtoul(ValueOf(name, environment).c_str(), nullptr, 10);
  };
  variables.push_back("OMPI_UNIVERSE_SIZE=" +
                      std::to_string(std::max(number("FERRY_UNIVERSE_SIZE"), number("PMI_SIZE"))));
  return variables;
}

}  // namespace

Status ChooseInterface(const std::string& program, std::vector<std::string>* environment) {
  const std::string wanted = ValueOf(kVariable, *environment);
  if (!wanted.empty() &&
      ("|" + std::string(kInterfaces) + "|").find("|" + wanted + "|") == std::string::npos) {
    return {ErrorCode::kInvalidArgument,
            std::string(kVariable) + "=" + wanted + ": it is one of " + std::string(kInterfaces)};
  }
  for (const InterfaceFamily& family : kInterfaceFamilies) {
    if (wanted == family.name && FolderOf(family).empty()) {
      return {ErrorCode::kNotFound, "--abi=" + wanted + ": no " + std::string(family.library) +
                                        " in ../lib/ferry/" + wanted + ", seen from " +
                                        OwnDirectory() + ": build or install it"};
    }
  }
  const std::string folders = FoldersFor(program, *environment);
  if (!folders.empty()) {
    const std::string users = ValueOf(kPath, *environment);
    SetVariables({std::string(kPath) + "=" + (users.empty() ? folders : folders + ":" + users)},
                 environment);
  }
  const std::string preloaded =
      wanted == "native" ? "" : WhatIsNeeded(program, ValueOf(kPath, *environment)).preloaded;
  if (!folders.empty() && !preloaded.empty()) {
    const std::string users = ValueOf(kPreload, *environment);
    SetVariables(
        {std::string(kPreload) + "=" + (users.empty() ? preloaded : users + " " + preloaded)},
        environment);
  }
  if (!folders.empty() && folders == FolderOf(kInterfaceFamilies[0])) {
    SetVariables(VariablesOfMpich(*environment), environment);
  } else if (!folders.empty() && folders == FolderOf(kInterfaceFamilies[1])) {
    SetVariables(VariablesOfOpenMpi(*environment), environment);
  }
  return {};
}

bool IsServed(const std::string& program, const std::vector<std::string>& environment) {
  const Needed needed = WhatIsNeeded(program, ValueOf(kPath, environment));
  return !needed.folder.empty() && FoldersFor(program, environment) == needed.folder;
}

}  // namespace ferry::tools
