// The names of users, from the user database, which may be slow: each answer is kept for a while.
//
// One thread at a time. Find blocks for as long as the database does.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <unordered_map>

namespace ferry::daemon {

class UserNames {
 public:
  // Empty if the user has none, or the database does not answer.
  std::string Find(uid_t uid);

 private:
  struct Entry {
    std::string name;
    uint64_t until_ns = 0;
  };
  std::unordered_map<uid_t, Entry> entries_;
};

}  // namespace ferry::daemon
