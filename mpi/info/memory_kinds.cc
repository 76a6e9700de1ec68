#include "mpi/info/memory_kinds.h"

#include <algorithm>

namespace ferry::mpi {
namespace {

constexpr std::string_view kAssertKinds = "mpi_assert_memory_alloc_kinds";

// Backends by the names that users choose them by.
std::string_view KindOfBackend(std::string_view backend) {
  return backend == "cuda"         ? "cuda"
         : backend == "hip"        ? "rocm"
         : backend == "level_zero" ? "level_zero"
                                   : "";
}

// The part up to the separator, which `text` loses.
std::string_view Next(std::string_view* text, char separator) {
  const size_t end = std::min(text->find(separator), text->size());
  const std::string_view part = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return part;
}

}  // namespace

MemoryKinds::MemoryKinds(std::string_view gpu_backend) {
  kinds_ = {{"mpi", {"alloc_mem", "win_allocate", "win_allocate_shared"}},
            {"system", {}},
            {"ferry", {"host", "pinned", "device"}}};
  // Not managed or shared memory: backends do not tell where that lies at a moment.
  if (const std::string_view name = KindOfBackend(gpu_backend); !name.empty()) {
    kinds_.push_back({name, {"host", "device"}, /*is_whole=*/false});
  }
}

bool MemoryKinds::Has(std::string_view kind) const {
  const bool is_restricted = kind.find(':') != std::string_view::npos;
  if (kind.ends_with(':')) {
    return false;
  }
  const std::string_view name = Next(&kind, ':');
  const auto known = std::find_if(kinds_.begin(), kinds_.end(),
                                  [&](const Kind& other) { return other.name == name; });
  if (known == kinds_.end() || (!is_restricted && !known->is_whole)) {
    return false;
  }
  while (!kind.empty()) {
    const std::string_view restrictor = Next(&kind, ':');
    if (std::find(known->restrictors.begin(), known->restrictors.end(), restrictor) ==
        known->restrictors.end()) {
      return false;
    }
  }
  return true;
}

bool MemoryKinds::HasAll(std::string_view kinds) const {
  while (!kinds.empty()) {
    if (!Has(Next(&kinds, ','))) {
      return false;
    }
  }
  return true;
}

std::string MemoryKinds::Supported(std::string_view requested) const {
  std::vector<std::string> all;
  for (const Kind& kind : kinds_) {
    if (kind.is_whole) {
      all.emplace_back(kind.name);
      continue;
    }
    for (const std::string_view restrictor : kind.restrictors) {
      all.push_back(std::string(kind.name) + ":" + std::string(restrictor));
    }
  }
  while (!requested.empty()) {
    const std::string_view kind = Next(&requested, ',');
    if (Has(kind) && std::find(all.begin(), all.end(), kind) == all.end()) {
      all.emplace_back(kind);
    }
  }
  std::string text;
  for (const std::string& kind : all) {
    text += (text.empty() ? "" : ",") + kind;
  }
  return text;
}

void TakeAssertedKinds(const std::vector<Info::Entry>& given, const MemoryKinds& kinds,
                       std::vector<Info::Entry>* hints) {
  for (const Info::Entry& wish : given) {
    if (wish.first == kAssertKinds && kinds.HasAll(wish.second)) {
      std::erase_if(*hints, [](const Info::Entry& hint) { return hint.first == kAssertKinds; });
      hints->push_back(wish);
    }
  }
}

}  // namespace ferry::mpi
