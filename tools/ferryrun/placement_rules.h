// Puts together what several flags say about where ranks run, and names those that contradict each
// other. `words`, everywhere: the flag and its value, as the user wrote them.
//
// Plain data, any thread. Errors: kInvalidArgument.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/status.h"
#include "tools/ferryrun/mapping.h"

namespace ferry::tools {

class PlacementRules {
 public:
  // --map-by: a rule for nodes, one for what is in them, and others behind colons. It leaves all
  // else as it is.
  Status MapBy(const std::string& words, const std::string& text);
  // -ppn: each node in turn gets `count` ranks.
  Status PerNode(const std::string& words, uint64_t count);
  // --rank-by.
  Status RankBy(const std::string& words, const std::string& text);
  // --bind-to.
  Status BindTo(const std::string& words, const std::string& text);
  // Ranks are bound by another word than a flag's.
  void BindingIsSaid(const std::string& words);

  // From now on a word counts only if nothing has been said about its matter, and contradicts
  // nothing.
  void YieldToFlags();

  // Everything has been said.
  Status Settle();

  // Returns the first words that say where ranks run; empty: none do.
  std::string FirstWords() const;

  const Mapping& mapping() const { return mapping_; }
  // As the option bind_to has it; empty: not said.
  const std::string& bind_to() const { return bind_to_; }

 private:
  enum class Topic { kMapBy, kNodes, kWidth, kRankBy, kBindTo, kCount };
  struct Said {
    std::string words;
    std::string value;
  };

  static std::string_view WhatOf(Topic topic);
  Said& SaidOf(Topic topic) { return said_[static_cast<size_t>(topic)]; }
  StatusOr<bool> Say(Topic topic, const std::string& words, const std::string& value);
  Status DealOut(const std::string& words, const Mapping& rule);
  Status SetWidth(const std::string& words, uint64_t width);

  Mapping mapping_;
  std::string bind_to_;
  std::array<Said, static_cast<size_t>(Topic::kCount)> said_;
  bool yields_ = false;
};

}  // namespace ferry::tools
