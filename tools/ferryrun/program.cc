#include "tools/ferryrun/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "common/own_program.h"

namespace ferry::tools {
namespace {

// 0, or why `path` cannot be run, as errno.
int WhyNotRunnable(const std::string& path) {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) {
    return errno;
  }
  if (S_ISDIR(file.st_mode)) {
    return EISDIR;
  }
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

Status CannotRun(const std::string& name, int error_number, const std::string& advice) {
  const bool missing = error_number == ENOENT || error_number == ENOTDIR;
  return {missing ? ErrorCode::kNotFound : ErrorCode::kPermissionDenied,
          "cannot run '" + name + "': " + std::strerror(error_number) + advice};
}

}  // namespace

StatusOr<std::string> FindProgram(const std::string& name, std::string_view search_path,
                                  const std::string& directory) {
  if (name.find('/') != std::string::npos) {
    const std::string path = directory.empty() || name[0] == '/' ? name : directory + "/" + name;
    const int error_number = WhyNotRunnable(path);
    if (error_number == 0) {
      return path;
    }
    return CannotRun(path, error_number,
                     error_number == EACCES ? " (is it executable? try chmod +x)" : "");
  }
  int best_error = ENOENT;  // "not executable" says more than "not found"
  while (!name.empty() && !search_path.empty()) {
    const size_t colon = search_path.find(':');
    const std::string_view folder = search_path.substr(0, colon);
    search_path.remove_prefix(colon == search_path.npos ? search_path.size() : colon + 1);
    const std::string path = (folder.empty() ? "." : std::string(folder)) + "/" + name;
    const int error_number = WhyNotRunnable(path);
    if (error_number == 0) {
      return directory.empty() ? path : std::filesystem::absolute(path).string();
    }
    if (error_number == EACCES) {
      best_error = EACCES;
    }
  }
  return CannotRun(name, best_error, " (is it in PATH, or did you mean ./" + name + "?)");
}

StatusOr<std::string> FindFerryd() {
  const std::filesystem::path folder = OwnDirectory();
  for (const char* place : {"ferryd", "../sbin/ferryd", "../../daemon/ferryd"}) {
    const auto path = (folder / place).lexically_normal();
    if (WhyNotRunnable(path) == 0) {
      return path.string();
    }
  }
  return Status(ErrorCode::kNotFound,
                "no ferryd beside " + folder.string() +
                    "/ferryrun: build or install it, or name it with --ferryd");
}

StatusOr<std::string> FindMallocLibrary() {
  const std::filesystem::path folder = OwnDirectory();
  for (const char* place :
       {"../lib/ferry", "../lib/x86_64-linux-gnu/ferry", "../../client/malloc"}) {
    const auto path = (folder / place / "libferry_malloc.so").lexically_normal();
    if (access(path.c_str(), R_OK) == 0) {
      return path.string();
    }
  }
  return Status(ErrorCode::kNotFound, "--malloc: no libferry_malloc.so beside " + folder.string() +
                                          "/ferryrun or in ../lib/ferry: build or install it");
}

}  // namespace ferry::tools
