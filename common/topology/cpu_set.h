// A set of CPUs, by the kernel's numbers. Plain data, any thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace ferry::topology {

inline constexpr uint32_t kMaxCpus = 8192;  // as of Linux

class CpuSet {
 public:
  CpuSet() = default;
  CpuSet(std::initializer_list<uint32_t> cpus);

  // Reads "0-3,8", as the kernel writes such lists. Errors: kInvalidArgument (nothing, no numbers,
  // a range that goes down, a number from kMaxCpus on).
  static StatusOr<CpuSet> Parse(std::string_view list);
  // "0-3,8"; empty for none.
  std::string Text() const;

  void Add(uint32_t cpu);  // below kMaxCpus
  void Add(const CpuSet& other);
  bool Contains(uint32_t cpu) const;
  bool Contains(const CpuSet& other) const;
  bool Intersects(const CpuSet& other) const { return !Intersection(other).empty(); }
  CpuSet Intersection(const CpuSet& other) const;
  CpuSet Without(const CpuSet& other) const;
  // Its members, in order.
  std::vector<uint32_t> Cpus() const;
  uint32_t size() const;
  bool empty() const { return words_.empty(); }
  // 64 CPUs in each, as the kernel's calls take them; the last one is not 0.
  const std::vector<uint64_t>& words() const { return words_; }

  bool operator==(const CpuSet&) const = default;

 private:
  void Trim();

  std::vector<uint64_t> words_;
};

}  // namespace ferry::topology
