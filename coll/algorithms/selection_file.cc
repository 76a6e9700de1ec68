#include "coll/algorithms/selection_file.h"

#include <algorithm>
#include <optional>

#include "common/number_text.h"

namespace ferry::collective {
namespace {

constexpr std::string_view kSpaces = " \t\r";

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kSpaces);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

Status Wrong(std::string_view where, const std::string& why) {
  return {ErrorCode::kConfiguration, std::string(where) + ": " + why};
}

std::string Quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

Status SetCollective(std::string_view text, std::string_view where, SelectionRule* rule) {
  std::string names;
  for (size_t i = 0; i < kCollectives; ++i) {
    rule->collective = static_cast<Collective>(i);
    if (text == CollectiveName(rule->collective)) {
      return {};
    }
    names += (i == 0 ? "" : ", ") + std::string(CollectiveName(rule->collective));
  }
  return Wrong(where, Quoted(text) + " is no collective; these are: " + names);
}

Status CheckAlgorithm(const SelectionRule& rule, std::string_view where) {
  const bool has_board = !IsAmongNeighbours(rule.collective);
  if (FindAlgorithm(rule.collective, rule.algorithm) != nullptr ||
      (has_board && rule.algorithm == kBoardName)) {
    return {};
  }
  std::string names = has_board ? kBoardName : "";
  for (const Algorithm& algorithm : AlgorithmsOf(rule.collective)) {
    names += (names.empty() ? "" : ", ") + std::string(algorithm.name);
  }
  return Wrong(where, Quoted(rule.algorithm) + " is no algorithm of " +
                          CollectiveName(rule.collective) + "; these are: " + names);
}

Status SetLayout(std::string_view text, std::string_view where, SelectionRule* rule) {
  for (const NodeLayout layout :
       {NodeLayout::kAny, NodeLayout::kOneNode, NodeLayout::kSpread, NodeLayout::kMixed}) {
    if (text == NodeLayoutName(layout)) {
      rule->layout = layout;
      return {};
    }
  }
  return Wrong(where, "nodes is " + Quoted(text) + "; allowed are any, one_node, spread, mixed");
}

class Parser {
 public:
  explicit Parser(std::string_view name) : name_(name) {}

  Status Line(std::string_view text) {
    line_++;
    text = Trim(text.substr(0, CommentStart(text)));
    if (text.empty()) {
      return {};
    }
    if (text == "[[rule]]") {
      FERRY_RETURN_IF_ERROR(EndRule());
      rule_.emplace();
      rule_line_ = line_;
      has_collective_ = false;
      return {};
    }
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || !rule_.has_value()) {
      return Wrong(Where(line_),
                   "expected [[rule]]" + std::string(rule_.has_value() ? " or key = value" : ""));
    }
    return Set(Trim(text.substr(0, equals)), Trim(text.substr(equals + 1)));
  }

  StatusOr<std::vector<SelectionRule>> Finish() {
    FERRY_RETURN_IF_ERROR(EndRule());
    return std::move(rules_);
  }

 private:
  std::string Where(size_t line) const { return name_ + ":" + std::to_string(line); }

  static size_t CommentStart(std::string_view text) {
    bool is_quoted = false;
    for (size_t i = 0; i < text.size(); ++i) {
      is_quoted = is_quoted != (text[i] == '"');
      if (text[i] == '#' && !is_quoted) {
        return i;
      }
    }
    return text.size();
  }

  Status Set(std::string_view key, std::string_view value) {
    const std::string where = Where(line_);
    if (key == "collective" || key == "algorithm" || key == "nodes") {
      if (value.size() < 2 || value.front() != '"' || value.back() != '"') {
        return Wrong(where, std::string(key) + " must be a string in double quotes");
      }
      const std::string_view text = value.substr(1, value.size() - 2);
      if (key == "collective") {
        has_collective_ = true;
        return SetCollective(text, where, &*rule_);
      }
      if (key == "nodes") {
        return SetLayout(text, where, &*rule_);
      }
      rule_->algorithm = text;
      return {};
    }
    const std::optional<uint64_t> number = NumberIn<uint64_t>(value);
    if (key != "max_bytes" && key != "max_ranks" && key != "segment_bytes") {
      return Wrong(where, "there is no key " + Quoted(key) +
                              "; these are: collective, algorithm, nodes, max_bytes, max_ranks, "
                              "segment_bytes");
    }
    if (!number.has_value() || (key == "max_ranks" && *number > UINT32_MAX)) {
      return Wrong(
          where, std::string(key) + " must be an integer of at least 0, not " + std::string(value));
    }
    if (key == "max_bytes") {
      rule_->max_bytes = *number;
    } else if (key == "max_ranks") {
      rule_->max_ranks = static_cast<uint32_t>(*number);
    } else {
      rule_->segment_bytes = *number;
    }
    return {};
  }

  Status EndRule() {
    if (!rule_.has_value()) {
      return {};
    }
    const std::string where = Where(rule_line_);
    if (!has_collective_ || rule_->algorithm.empty()) {
      return Wrong(where, "the rule names no collective or no algorithm");
    }
    FERRY_RETURN_IF_ERROR(CheckAlgorithm(*rule_, where));
    rules_.push_back(std::move(*rule_));
    rule_.reset();
    return {};
  }

  const std::string name_;
  size_t line_ = 0;
  size_t rule_line_ = 0;
  bool has_collective_ = false;
  std::optional<SelectionRule> rule_;
  std::vector<SelectionRule> rules_;
};

}  // namespace

StatusOr<std::vector<SelectionRule>> ParseSelectionRules(std::string_view text,
                                                         std::string_view name) {
  Parser parser(name);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    FERRY_RETURN_IF_ERROR(parser.Line(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parser.Finish();
}

std::string FormatSelectionRules(const std::vector<SelectionRule>& rules) {
  std::string text;
  for (const SelectionRule& rule : rules) {
    text += "[[rule]]\ncollective = " + Quoted(CollectiveName(rule.collective)) +
            "\nalgorithm = " + Quoted(rule.algorithm) + "\n";
    if (rule.max_bytes != UINT64_MAX) {
      text += "max_bytes = " + std::to_string(rule.max_bytes) + "\n";
    }
    if (rule.max_ranks != UINT32_MAX) {
      text += "max_ranks = " + std::to_string(rule.max_ranks) + "\n";
    }
    if (rule.layout != NodeLayout::kAny) {
      text += "nodes = " + Quoted(NodeLayoutName(rule.layout)) + "\n";
    }
    if (rule.segment_bytes != 0) {
      text += "segment_bytes = " + std::to_string(rule.segment_bytes) + "\n";
    }
    text += "\n";
  }
  return text;
}

StatusOr<std::vector<SelectionRule>> ParseAlgorithmNames(std::string_view text,
                                                         std::string_view where) {
  std::vector<SelectionRule> rules;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view item = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      return Wrong(where, Quoted(item) + " is not of the form collective=algorithm");
    }
    SelectionRule rule;
    FERRY_RETURN_IF_ERROR(SetCollective(Trim(item.substr(0, equals)), where, &rule));
    const std::string_view algorithm = item.substr(equals + 1);
    const size_t colon = std::min(algorithm.find(':'), algorithm.size());
    rule.algorithm = Trim(algorithm.substr(0, colon));
    FERRY_RETURN_IF_ERROR(CheckAlgorithm(rule, where));
    if (colon != algorithm.size()) {
      const std::optional<uint64_t> segment = NumberIn<uint64_t>(Trim(algorithm.substr(colon + 1)));
      if (!segment.has_value()) {
        return Wrong(where, "the segment in " + Quoted(item) + " is no number of bytes");
      }
      rule.segment_bytes = *segment;
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace ferry::collective
