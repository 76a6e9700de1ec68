// Finds what a user named, as a shell would. Any thread; blocks on the file system only.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/status.h"

namespace ferry::tools {

// The path to run for `name`: itself if it holds a slash, seen from `directory` unless that is
// empty, else the first match in `search_path` (entries separated by colons). kNotFound, or
// kPermissionDenied when it is there but cannot be run; the message has the form "cannot run 'x':
// why (what to do)".
StatusOr<std::string> FindProgram(const std::string& name, std::string_view search_path,
                                  const std::string& directory = "");

// ferryd beside this program: in the same folder as after an installation, or where the build puts
// it. kNotFound says where it was looked for.
StatusOr<std::string> FindFerryd();

// libferry_malloc.so, in the same way.
StatusOr<std::string> FindMallocLibrary();

}  // namespace ferry::tools
