// Whether ranks use the MPI or OpenSHMEM library of somebody else: each of them then is a job of
// its own, of one rank, and runs well, which nobody wants who asked for several.
//
// Any thread; reads /proc and programs, and does not block.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::tools {

// What a text says of the libraries in it, be it /proc/PID/maps or a list of names.
struct LibrariesSeen {
  std::string foreign;  // the first such library; empty: none
  bool ferry = false;   // libferry is there: whatever has MPI's name beside it is Ferry's

  // Nothing more is to be found out.
  bool is_certain() const { return ferry || !foreign.empty(); }
};
LibrariesSeen ParseMaps(std::string_view text);

// The libraries that a program was linked with (DT_NEEDED, System V ABI), a line each; empty for
// what is no ELF program of this machine.
std::string NeededLibraries(const std::string& program);

// Looks at running ranks now and then, for what a process had loaded is gone with it.
class LibraryWatch {
 public:
  // `programs`: what ranks run, for those that end before anybody has looked.
  explicit LibraryWatch(std::vector<std::string> programs) : programs_(std::move(programs)) {}

  // When to look again; 0: never, it is known.
  uint64_t next_ns() const { return next_ns_; }
  // The first call begins the watch. `ranks`: processes that run. Looks at those that they started,
  // too, such as the program of a wrapper script.
  void Look(uint64_t now_ns, const std::vector<pid_t>& ranks);
  // The library of somebody else that ranks had, by its path or name, if none had Ferry's.
  std::string Foreign() const;

 private:
  const std::vector<std::string> programs_;
  LibrariesSeen seen_;
  uint64_t start_ns_ = 0;
  uint64_t next_ns_ = 1;
};

}  // namespace ferry::tools
