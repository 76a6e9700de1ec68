// Finds the libraries that libferry opens by itself.
//
// Calling thread: any. Reads the file system.
#pragma once

#include <string>
#include <vector>

namespace ferry::client {

// Returns the paths to try for `file`, best first: in folder "ferry" below libferry, as installed;
// in `build_folder` below it, as in a build tree (which reaches the library through a link); beside
// it, where both were copied; else by the loader's own path.
std::vector<std::string> LibraryPaths(const std::string& file, const std::string& build_folder);

}  // namespace ferry::client
