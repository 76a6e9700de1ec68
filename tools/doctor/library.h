// The libferry that programs on this machine would load.
//
// Main thread; loads the library.
#pragma once

#include <string>

namespace ferry::tools {

struct LibraryFacts {
  std::string path;     // empty: none was found
  std::string version;  // what ferry_version says; empty: it has no such function
};

// The one installed with this program, else the loader's.
LibraryFacts FindLibrary();

}  // namespace ferry::tools
