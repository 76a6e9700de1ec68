// Finds ranks that use another MPI or OpenSHMEM library than Ferry's. Each of them is then a job of
// its own, of one rank, and runs without an error, though the user has asked for one job of
// several.
//
// Any thread; reads /proc and programs, and does not block.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::tools {

// The libraries that a text names, be it /proc/PID/maps or a list of names.
struct LibrariesSeen {
  std::string foreign;  // the first such library; empty: none
  // libferry is there, or a library of a folder of Ferry's (interface_folders.h): whatever has
  // MPI's name beside it is Ferry's.
  bool ferry = false;

  // Returns true if there is a library of either.
  bool any() const { return ferry || !foreign.empty(); }
};
LibrariesSeen ParseMaps(std::string_view text);

// Returns those that a running process has loaded, or processes that it has started, so many
// generations of them.
inline constexpr int kMostGenerations = 4;
LibrariesSeen LibrariesOf(pid_t process, int generations = kMostGenerations);

// Looks at running ranks now and then, because the list of a process's libraries is gone with it.
class LibraryWatch {
 public:
  // `programs`: the files that ranks run, for ranks that end before the first look.
  explicit LibraryWatch(std::vector<std::string> programs) : programs_(std::move(programs)) {}

  // Returns the time of the next look; 0: none, the verdict is certain.
  uint64_t next_ns() const { return next_ns_; }
  // The first call begins the watch. `ranks`: processes that run. Looks at those that they started,
  // too, such as the program of a wrapper script.
  void Look(uint64_t now_ns, const std::vector<pid_t>& ranks);
  // Returns the path or name of the foreign library that ranks had, if no rank had Ferry's; else
  // "".
  std::string Foreign() const;

 private:
  // Returns true once more looks cannot change the verdict.
  bool IsCertain() const;

  const std::vector<std::string> programs_;
  LibrariesSeen seen_;
  uint32_t sightings_ = 0;  // looks that found a foreign library
  uint64_t start_ns_ = 0;
  uint64_t next_ns_ = 1;
};

}  // namespace ferry::tools
