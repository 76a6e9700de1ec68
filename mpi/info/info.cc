#include "mpi/info/info.h"

#include <algorithm>
#include <cstring>

#include "ferry/mpi/mpi.h"

namespace ferry::mpi {
namespace {

// Quotes a key in messages; of long ones only the beginning.
std::string Quoted(const char* text) {
  constexpr size_t kShown = 60;
  std::string shown(text, strnlen(text, kShown));
  return "\"" + shown + (shown.size() == kShown ? "...\"" : "\"");
}

Failure CheckKey(const char* key) {
  if (key == nullptr) {
    return Failure{MPI_ERR_INFO_KEY, "key is null"};
  }
  size_t length = strnlen(key, MPI_MAX_INFO_KEY);
  if (length == 0) {
    return Failure{MPI_ERR_INFO_KEY, "key is empty"};
  }
  if (length == MPI_MAX_INFO_KEY) {
    return Failure{MPI_ERR_INFO_KEY, "key " + Quoted(key) + " is longer than " +
                                         std::to_string(MPI_MAX_INFO_KEY - 1) + " bytes"};
  }
  return Failure{};
}

Failure CheckValue(const char* key, const char* value) {
  if (value == nullptr) {
    return Failure{MPI_ERR_INFO_VALUE, "the value of key " + Quoted(key) + " is null"};
  }
  if (strnlen(value, MPI_MAX_INFO_VAL) == MPI_MAX_INFO_VAL) {
    return Failure{MPI_ERR_INFO_VALUE, "the value of key " + Quoted(key) + " is longer than " +
                                           std::to_string(MPI_MAX_INFO_VAL - 1) + " bytes"};
  }
  return Failure{};
}

template <typename Entries>
auto Locate(Entries& entries, std::string_view key) {
  return std::find_if(entries.begin(), entries.end(),
                      [&](const Info::Entry& entry) { return entry.first == key; });
}

}  // namespace

Failure Info::Set(const char* key, const char* value) {
  FERRY_RETURN_FAILURE(CheckKey(key));
  FERRY_RETURN_FAILURE(CheckValue(key, value));
  std::lock_guard lock(mutex_);
  auto at = Locate(entries_, key);
  if (at != entries_.end()) {
    at->second = value;
  } else {
    entries_.emplace_back(key, value);
  }
  return Failure{};
}

Failure Info::Remove(const char* key) {
  FERRY_RETURN_FAILURE(CheckKey(key));
  std::lock_guard lock(mutex_);
  auto at = Locate(entries_, key);
  if (at == entries_.end()) {
    return Failure{MPI_ERR_INFO_NOKEY, "there is no key " + Quoted(key)};
  }
  entries_.erase(at);
  return Failure{};
}

Failure Info::Get(const char* key, std::optional<std::string>* value) const {
  FERRY_RETURN_FAILURE(CheckKey(key));
  *value = Find(key);
  return Failure{};
}

Failure Info::KeyAt(int number, std::string* key) const {
  std::lock_guard lock(mutex_);
  if (number < 0 || static_cast<size_t>(number) >= entries_.size()) {
    return Failure{MPI_ERR_ARG, "n is " + std::to_string(number) + "; there are " +
                                    std::to_string(entries_.size()) + " keys"};
  }
  *key = entries_[number].first;
  return Failure{};
}

int Info::count() const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(entries_.size());
}

std::optional<std::string> Info::Find(std::string_view key) const {
  std::lock_guard lock(mutex_);
  auto at = Locate(entries_, key);
  return at == entries_.end() ? std::nullopt : std::optional(at->second);
}

std::vector<Info::Entry> Info::entries() const {
  std::lock_guard lock(mutex_);
  return entries_;
}

void CopyValue(std::string_view text, int limit, char* out) {
  size_t length = std::min(text.size(), static_cast<size_t>(std::max(limit, 0)));
  memcpy(out, text.data(), length);
  out[length] = '\0';
}

void CopyString(std::string_view text, int* size, char* out) {
  if (*size > 0) {
    CopyValue(text, *size - 1, out);
  }
  *size = static_cast<int>(text.size()) + 1;
}

void DescribeCommand(int argc, char** argv, StartFacts* facts) {
  if (argv == nullptr || argc < 1 || argv[0] == nullptr) {
    return;
  }
  facts->command = argv[0];
  for (int i = 1; i < argc && argv[i] != nullptr; ++i) {
    facts->arguments += (i > 1 ? " " : "") + std::string(argv[i]);
  }
}

std::vector<Info::Entry> DescribeStart(const StartFacts& facts) {
  std::vector<Info::Entry> entries;
  auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) {
      entries.emplace_back(key, value.substr(0, MPI_MAX_INFO_VAL - 1));
    }
  };
  add("command", facts.command);
  add("argv", facts.arguments);
  add("maxprocs", facts.max_processes < 0 ? "" : std::to_string(facts.max_processes));
  add("host", facts.host);
  add("arch", facts.arch);
  add("wdir", facts.wdir);
  add("mpi_memory_alloc_kinds", facts.memory_alloc_kinds);
  return entries;
}

}  // namespace ferry::mpi
