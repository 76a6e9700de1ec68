#include "common/topology/cpu_set.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "common/number_text.h"

namespace ferry::topology {
namespace {

constexpr uint32_t kBits = 64;

std::optional<uint32_t> ParseCpu(std::string_view text) {
  const std::optional<uint32_t> cpu = NumberIn<uint32_t>(text);
  return cpu && *cpu < kMaxCpus ? cpu : std::nullopt;
}

// "3" or "0-3".
std::optional<std::pair<uint32_t, uint32_t>> ParseRange(std::string_view text) {
  const size_t dash = text.find('-');
  const std::optional<uint32_t> first = ParseCpu(text.substr(0, dash));
  const std::optional<uint32_t> last =
      dash == std::string_view::npos ? first : ParseCpu(text.substr(dash + 1));
  if (!first || !last || *first > *last) {
    return std::nullopt;
  }
  return std::pair(*first, *last);
}

}  // namespace

CpuSet::CpuSet(std::initializer_list<uint32_t> cpus) {
  for (const uint32_t cpu : cpus) {
    Add(cpu);
  }
}

StatusOr<CpuSet> CpuSet::Parse(std::string_view list) {
  CpuSet set;
  std::string_view rest = list;
  while (true) {
    const size_t comma = rest.find(',');
    const auto range = ParseRange(rest.substr(0, comma));
    if (!range) {
      return Status(ErrorCode::kInvalidArgument,
                    "\"" + std::string(list) +
                        "\" is no list of CPUs: write numbers and ranges below " +
                        std::to_string(kMaxCpus) + ", as in 0-3,8");
    }
    for (uint32_t cpu = range->first; cpu <= range->second; ++cpu) {
      set.Add(cpu);
    }
    if (comma == std::string_view::npos) {
      return set;
    }
    rest.remove_prefix(comma + 1);
  }
}

std::string CpuSet::Text() const {
  std::string text;
  const auto end = static_cast<uint32_t>(words_.size() * kBits);
  for (uint32_t cpu = 0; cpu < end; ++cpu) {
    if (!Contains(cpu)) {
      continue;
    }
    const uint32_t first = cpu;
    while (Contains(cpu + 1)) {
      ++cpu;
    }
    text += (text.empty() ? "" : ",") + std::to_string(first);
    text += cpu == first ? "" : "-" + std::to_string(cpu);
  }
  return text;
}

void CpuSet::Add(uint32_t cpu) {
  words_.resize(std::max<size_t>(words_.size(), cpu / kBits + 1));
  words_[cpu / kBits] |= uint64_t{1} << (cpu % kBits);
}

void CpuSet::Add(const CpuSet& other) {
  words_.resize(std::max(words_.size(), other.words_.size()));
  for (size_t i = 0; i < other.words_.size(); ++i) {
    words_[i] |= other.words_[i];
  }
}

bool CpuSet::Contains(uint32_t cpu) const {
  return cpu / kBits < words_.size() && (words_[cpu / kBits] >> (cpu % kBits) & 1) != 0;
}

bool CpuSet::Contains(const CpuSet& other) const { return Intersection(other) == other; }

CpuSet CpuSet::Intersection(const CpuSet& other) const {
  CpuSet both;
  both.words_.resize(std::min(words_.size(), other.words_.size()));
  for (size_t i = 0; i < both.words_.size(); ++i) {
    both.words_[i] = words_[i] & other.words_[i];
  }
  both.Trim();
  return both;
}

CpuSet CpuSet::Without(const CpuSet& other) const {
  CpuSet rest = *this;
  for (size_t i = 0; i < std::min(words_.size(), other.words_.size()); ++i) {
    rest.words_[i] &= ~other.words_[i];
  }
  rest.Trim();
  return rest;
}

std::vector<uint32_t> CpuSet::Cpus() const {
  std::vector<uint32_t> cpus;
  for (size_t i = 0; i < words_.size(); ++i) {
    for (uint64_t bits = words_[i]; bits != 0; bits &= bits - 1) {
      cpus.push_back(static_cast<uint32_t>(i * kBits) +
                     static_cast<uint32_t>(std::countr_zero(bits)));
    }
  }
  return cpus;
}

void CpuSet::Trim() {
  while (!words_.empty() && words_.back() == 0) {
    words_.pop_back();
  }
}

uint32_t CpuSet::size() const {
  uint32_t count = 0;
  for (const uint64_t word : words_) {
    count += static_cast<uint32_t>(std::popcount(word));
  }
  return count;
}

}  // namespace ferry::topology
