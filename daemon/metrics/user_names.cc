#include "daemon/metrics/user_names.h"

#include <errno.h>
#include <pwd.h>

#include <vector>

#include "common/clock.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kKeptNs = 300'000'000'000;  // users are seldom renamed
constexpr size_t kMostEntries = 4096;          // then all are asked for anew
constexpr size_t kMostRoom = 1 << 20;          // for an entry of the database

std::string Ask(uid_t uid) {
  std::vector<char> room(1024);
  passwd entry{};
  passwd* found = nullptr;
  while (getpwuid_r(uid, &entry, room.data(), room.size(), &found) == ERANGE &&
         room.size() < kMostRoom) {
    room.resize(room.size() * 2);
  }
  return found == nullptr ? "" : found->pw_name;
}

}  // namespace

std::string UserNames::Find(uid_t uid) {
  const uint64_t now_ns = MonotonicNs();
  if (entries_.size() >= kMostEntries) {
    entries_.clear();
  }
  Entry& entry = entries_[uid];
  if (entry.until_ns < now_ns) {
    entry = {Ask(uid), now_ns + kKeptNs};
  }
  return entry.name;
}

}  // namespace ferry::daemon
