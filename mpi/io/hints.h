// The hints of a file (MPI 5.0, section 14.2.8): what a program asks for by MPI_Info, and what is
// in use. docs/files.md has the table of keys for users.
//
// Keys that are not known, and values that a key cannot have, are ignored, as the standard says of
// hints. Calling thread: any, one at a time for one object. Nothing blocks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mpi/info/info.h"

namespace ferry::mpi {

enum class Switch : uint8_t { kAutomatic, kEnable, kDisable };

class Hints {
 public:
  Hints();

  // `at_open`: keys that only count when the file is opened or made count, too.
  void Take(const std::vector<Info::Entry>& given, bool at_open);
  // All keys in use, with their values, in the order of docs/files.md.
  std::vector<Info::Entry> entries() const { return entries_; }

  // ---- The values that decide something ----
  // The access rights of a new file; nothing: those that the system gives.
  std::optional<mode_t> file_perm() const;
  int64_t cb_buffer_size() const { return values_.cb_buffer_size; }
  // 0: Ferry chooses.
  int64_t cb_nodes() const { return values_.cb_nodes; }
  int64_t read_buffer_size() const { return values_.read_buffer_size; }
  int64_t write_buffer_size() const { return values_.write_buffer_size; }
  Switch collective_read() const { return values_.collective_read; }
  Switch collective_write() const { return values_.collective_write; }
  Switch sieve_reads() const { return values_.sieve_reads; }
  // 0: not known, or left to the file system.
  int64_t striping_factor() const { return values_.striping_factor; }
  int64_t striping_unit() const { return values_.striping_unit; }

 private:
  // The values of entries_, so that no call has to read texts.
  struct Values {
    int64_t cb_buffer_size = 0;
    int64_t cb_nodes = 0;
    int64_t read_buffer_size = 0;
    int64_t write_buffer_size = 0;
    int64_t striping_factor = 0;
    int64_t striping_unit = 0;
    Switch collective_read = Switch::kAutomatic;
    Switch collective_write = Switch::kAutomatic;
    Switch sieve_reads = Switch::kAutomatic;
  };
  void ReadValues();
  const std::string* Find(const std::string& key) const;
  int64_t Number(const char* key) const;
  Switch SwitchOf(const char* key) const;

  std::vector<Info::Entry> entries_;
  Values values_;
};

}  // namespace ferry::mpi
