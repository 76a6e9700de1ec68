#include "tools/ferryrun/placement_rules.h"

#include <algorithm>

namespace ferry::tools {
namespace {

Status Refuse(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

}  // namespace

std::string_view PlacementRules::WhatOf(Topic topic) {
  switch (topic) {
    case Topic::kMapBy:
      return "how ranks are dealt out";
    case Topic::kNodes:
      return "how many ranks each node gets in its turn";
    case Topic::kWidth:
      return "how many cores each rank has";
    case Topic::kRankBy:
      return "which rank runs where";
    case Topic::kBindTo:
    case Topic::kCount:
      break;
  }
  return "what ranks are bound to";
}

// Notes the words that say it. False: it is said already, and these yield. Refuses a contradiction.
StatusOr<bool> PlacementRules::Say(Topic topic, const std::string& words,
                                   const std::string& value) {
  Said& said = SaidOf(topic);
  if (said.words.empty()) {
    said = {words, value};
    return true;
  }
  if (!yields_ && said.value != value) {
    return Refuse(said.words + " and " + words + " both say " + std::string(WhatOf(topic)) +
                  ": leave one out");
  }
  return !yields_;
}

// Takes from `rule` how nodes get their ranks.
Status PlacementRules::DealOut(const std::string& words, const Mapping& rule) {
  const StatusOr<bool> counts = Say(
      Topic::kNodes, words,
      (rule.by == Mapping::By::kNode ? "in turn"
                                     : (rule.wraps ? "" : "ppr ") + std::to_string(rule.count)) +
          (rule.per_unit > 0 ? std::string(NameOf(*rule.unit)) : ""));
  FERRY_RETURN_IF_ERROR(counts.status());
  if (*counts) {
    mapping_.by = rule.by;
    mapping_.count = rule.count;
    mapping_.wraps = rule.wraps;
  }
  return {};
}

Status PlacementRules::SetWidth(const std::string& words, uint64_t width) {
  const StatusOr<bool> counts = Say(Topic::kWidth, words, std::to_string(width));
  FERRY_RETURN_IF_ERROR(counts.status());
  if (*counts) {
    mapping_.width = width;
  }
  return {};
}

Status PlacementRules::MapBy(const std::string& words, const std::string& text) {
  const StatusOr<Mapping> rule = ParseMapping(text);
  FERRY_RETURN_IF_ERROR(rule.status());
  if (!text.starts_with(':')) {
    const std::string name = text.substr(0, std::min(text.find_first_of(":,"), text.size()));
    const StatusOr<bool> counts =
        Say(Topic::kMapBy, words, rule->by == Mapping::By::kCount ? text : name);
    FERRY_RETURN_IF_ERROR(counts.status());
    if (!*counts) {
      return {};
    }
    mapping_.unit = rule->unit;
    mapping_.per_unit = rule->per_unit;
  }
  if (rule->by != Mapping::By::kSlot) {
    FERRY_RETURN_IF_ERROR(DealOut(words, *rule));
  }
  if (rule->width > 0) {
    FERRY_RETURN_IF_ERROR(SetWidth(words, rule->width));
  }
  mapping_.threads_are_cpus |= rule->threads_are_cpus;
  mapping_.oversubscribes &= rule->oversubscribes;
  return {};
}

Status PlacementRules::PerNode(const std::string& words, uint64_t count) {
  return DealOut(words, {.by = Mapping::By::kCount, .count = count});
}

Status PlacementRules::RankBy(const std::string& words, const std::string& text) {
  Mapping rule;
  FERRY_RETURN_IF_ERROR(ParseOrder(text, &rule));
  const StatusOr<bool> counts = Say(Topic::kRankBy, words, text);
  FERRY_RETURN_IF_ERROR(counts.status());
  if (*counts) {
    mapping_.order = rule.order;
    mapping_.order_unit = rule.order_unit;
  }
  return {};
}

Status PlacementRules::BindTo(const std::string& words, const std::string& text) {
  const StatusOr<tools::BindTo> rule = ParseBindTo(text);
  FERRY_RETURN_IF_ERROR(rule.status());
  const StatusOr<bool> counts = Say(Topic::kBindTo, words, rule->name);
  FERRY_RETURN_IF_ERROR(counts.status());
  if (!*counts) {
    return {};
  }
  bind_to_ = rule->name;
  return rule->width > 0 ? SetWidth(words, rule->width) : Status();
}

void PlacementRules::BindingIsSaid(const std::string& words) {
  Said& said = SaidOf(Topic::kBindTo);
  said.words = said.words.empty() ? words : said.words;
}

void PlacementRules::YieldToFlags() {
  if (mapping_.width > 0) {
    BindingIsSaid(SaidOf(Topic::kWidth).words);  // to cores: Settle
  }
  yields_ = true;
}

std::string PlacementRules::FirstWords() const {
  const auto first = std::find_if(said_.begin(), said_.end(),
                                  [](const Said& said) { return !said.words.empty(); });
  return first == said_.end() ? "" : first->words;
}

// Cores for each rank are given by a binding to cores.
Status PlacementRules::Settle() {
  if (mapping_.width == 0) {
    return {};
  }
  const Said& binding = SaidOf(Topic::kBindTo);
  const Said& width = SaidOf(Topic::kWidth);
  if (bind_to_.empty() || bind_to_ == "auto") {
    bind_to_ = mapping_.threads_are_cpus ? "hwthread" : "core";
    return {};
  }
  const bool gives_cores = bind_to_ == "core" || bind_to_ == "hwthread";
  if (binding.words != width.words && !gives_cores) {
    return Refuse(width.words + " gives each rank cores of its own, and " + binding.words +
                  " does not: leave one out");
  }
  if (mapping_.threads_are_cpus && bind_to_ == "core") {
    return Refuse(width.words + " counts hardware threads here, and " + binding.words +
                  " gives whole cores: say --bind-to hwthread");
  }
  return {};
}

}  // namespace ferry::tools
