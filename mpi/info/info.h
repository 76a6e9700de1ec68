// MPI_Info: short texts under short keys, in the order in which the keys came. MPI 5.0, chapter 10.
//
// Calling thread: any. Does not block. Failures name the key. Keys are compared byte by byte.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mpi/base/failure.h"
#include "mpi/base/object.h"

namespace ferry::mpi {

class Info : public Object {
 public:
  using Entry = std::pair<std::string, std::string>;

  Info() : Object(ForAnyThread()) {}
  explicit Info(std::vector<Entry> entries)
      : Object(ForAnyThread()), entries_(std::move(entries)) {}

  // Adds an entry, or gives the one with this key a new value. MPI_ERR_INFO_KEY for a null or empty
  // key or one of MPI_MAX_INFO_KEY bytes or more, MPI_ERR_INFO_VALUE likewise (which may be empty).
  Failure Set(const char* key, const char* value);
  // MPI_ERR_INFO_NOKEY if there is none.
  Failure Remove(const char* key);
  // MPI_ERR_INFO_KEY for a key that could not be set.
  Failure Get(const char* key, std::optional<std::string>* value) const;
  // The key of an entry by number, 0 .. count() - 1; MPI_ERR_ARG for another number.
  Failure KeyAt(int number, std::string* key) const;
  int count() const;

  // For use by the library itself: the value, or nothing.
  std::optional<std::string> Find(std::string_view key) const;
  std::vector<Entry> entries() const;
  Ref<Info> Copy() const { return MakeRef<Info>(entries()); }

 private:
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

// Writes `text` as MPI_Info_get does: at most `limit` bytes and a 0 behind them.
void CopyValue(std::string_view text, int limit, char* out);
// Writes `text` as MPI_Info_get_string does: at most *size bytes with the 0, none if *size is 0;
// *size becomes what all of it needs.
void CopyString(std::string_view text, int* size, char* out);

// How the program was started, for MPI_INFO_ENV and MPI_Info_create_env (section 11.5.3). Empty or
// negative: not known, and left out.
struct StartFacts {
  std::string command;
  std::string arguments;
  std::string wdir;
  std::string host;
  std::string arch;
  std::string memory_alloc_kinds;
  int max_processes = -1;
};

// `arguments` joined by spaces, argv[0] apart. `argv` may be null.
void DescribeCommand(int argc, char** argv, StartFacts* facts);
// Values too long for an entry are cut.
std::vector<Info::Entry> DescribeStart(const StartFacts& facts);

}  // namespace ferry::mpi
