// Which libraries a program is linked with, as its file and those of its libraries say (System V
// ABI, chapter 5; ld.so(8) for where a library is found).
//
// Any thread; reads files, and does not block.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace ferry::tools {

// Returns the libraries that a program names (DT_NEEDED), a line each; empty if it is no ELF
// program of this machine.
std::string NeededLibraries(const std::string& program);

// Returns the names that a program needs, then those that its libraries need, and so on; each once,
// nearest first. Those for which `is_leaf` returns true are not looked into. `library_path`: the
// program's LD_LIBRARY_PATH. A library that is not found has no further ones.
std::vector<std::string> AllNeededLibraries(const std::string& program,
                                            const std::string& library_path,
                                            const std::function<bool(const std::string&)>& is_leaf);

struct NeededLibrary {
  std::string name;
  std::string path;  // where the loader finds it; empty: nowhere
  // DT_RPATH finds it, before the folders of LD_LIBRARY_PATH.
  bool is_by_rpath = false;
};
// As AllNeededLibraries, of the leaves alone.
std::vector<NeededLibrary> FindNeeded(const std::string& program, const std::string& library_path,
                                      const std::function<bool(const std::string&)>& is_leaf);

// Returns the names that a library takes from others (weak ones are left out), or that it defines.
std::set<std::string> NamesTaken(const std::string& library);
std::set<std::string> NamesDefined(const std::string& library);

}  // namespace ferry::tools
