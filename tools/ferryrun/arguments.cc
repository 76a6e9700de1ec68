#include "tools/ferryrun/arguments.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/nearest.h"
#include "common/version.h"
#include "config/environment.h"
#include "config/options.h"
#include "tools/ferryrun/binary_interface.h"
#include "tools/ferryrun/flag_table.h"
#include "tools/ferryrun/placement_rules.h"
#include "tools/profile/trace_file.h"

namespace ferry::tools {
namespace {

constexpr int kUsageError = 2;

Status Refuse(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

StatusOr<uint64_t> WholeNumber(std::string_view flag, const std::string& text) {
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != text.npos) {
    return Refuse(std::string(flag) + ": '" + text + "' is not a whole number from 0 to 999999999");
  }
  return std::strtoull(text.c_str(), nullptr, 10);
}

// The option of config/ that a flag --na-me or --na_me sets; null if there is none.
const config::Option* OptionOf(std::string_view flag) {
  if (!flag.starts_with("--")) {
    return nullptr;
  }
  std::string name(flag.substr(2));
  std::replace(name.begin(), name.end(), '-', '_');
  const config::Option* option = config::FindOption(name);
  return option == nullptr || option->source == config::Source::kEnvironmentOnly ? nullptr : option;
}

class Parser {
 public:
  Parser(std::vector<std::string> words, const char* const* environment)
      : words_(std::move(words)), environment_(environment) {}

  StatusOr<Arguments> Parse() {
    do {
      arguments_.parts.emplace_back();
      FERRY_RETURN_IF_ERROR(ParsePart());
    } while (!done_ && next_ < words_.size());
    if (!done_) {
      FERRY_RETURN_IF_ERROR(SettleRankFile());
      TakeIntelVariables();
      FERRY_RETURN_IF_ERROR(placement_.Settle());
      arguments_.mapping = placement_.mapping();
      if (!placement_.bind_to().empty()) {
        SetOption("bind_to", placement_.bind_to());
      }
    }
    return std::move(arguments_);
  }
  // The text to print instead of running anything; empty: none.
  const std::string& text() const { return text_; }

 private:
  Part& part() { return arguments_.parts.back(); }

  // Flags, a program and its arguments, up to a ":" or the end.
  Status ParsePart() {
    while (next_ < words_.size() && words_[next_].starts_with('-')) {
      const std::string word = words_[next_++];
      if (word == "--") {
        break;
      }
      FERRY_RETURN_IF_ERROR(ParseFlag(word));
      if (done_) {
        return {};
      }
    }
    while (next_ < words_.size() && words_[next_] != ":") {
      part().program.push_back(words_[next_++]);
    }
    if (part().program.empty()) {
      return Refuse("no program to run" +
                    (next_ == words_.size() && arguments_.parts.size() == 1
                         ? ""
                         : " in part " + std::to_string(arguments_.parts.size()) +
                               ": each \":\" stands between two programs"));
    }
    if (next_ < words_.size() && ++next_ == words_.size()) {
      return Refuse("no program to run after the last \":\"");
    }
    return {};
  }

  Status ParseFlag(const std::string& word) {
    const size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    std::vector<std::string> values;
    if (equals != word.npos) {
      values.push_back(word.substr(equals + 1));
    }
    const FlagRow* row = FindFlag(name);
    if (row == nullptr && word.size() > 2 && word.starts_with("-n") &&
        word.find_first_not_of("0123456789", 2) == word.npos) {
      name = "-n";
      row = FindFlag(name);
      values = {word.substr(2)};
    }
    if (row != nullptr && row->flag == Flag::kMalloc && !values.empty()) {
      row = nullptr;  // --malloc=system is the option
    }
    if (row == nullptr) {
      const config::Option* option = OptionOf(name);
      if (option == nullptr) {
        return UnknownFlag(name);
      }
      FERRY_RETURN_IF_ERROR(TakeValues(name, "VALUE", &values));
      if (std::string_view(option->name) == "bind_to") {
        return placement_.BindTo(name + "=" + values[0], values[0]);
      }
      SetOption(option->name, values[0]);
      return {};
    }
    if (row->flag == Flag::kRefused) {
      return Refuse(name + " is another launcher's flag; here, " + row->help);
    }
    FERRY_RETURN_IF_ERROR(TakeValues(name, row->values, &values));
    typed_ = name;
    for (const std::string& value : values) {
      typed_ += " " + value;
    }
    if (row->flag == Flag::kForeign) {
      return TakeForeign(*row, values);
    }
    return IsOurs(*row) ? Apply(row->flag, name, values)
                        : ApplyOther(*row, values.empty() ? "" : values[0]);
  }

  // A parameter of --mca may be the same as a flag.
  Status TakeForeign(const FlagRow& row, const std::vector<std::string>& values) {
    const FlagRow* const same = values[0].starts_with('-') ? nullptr : FindFlag(values[0]);
    if (same != nullptr && values.size() > 1) {
      return ApplyOther(*same, values[1]);
    }
    std::fprintf(stderr, "ferryrun: warning: %s is ignored: %s\n",
                 typed_.substr(0, typed_.find(' ', typed_.find(' ') + 1)).c_str(), row.help);
    return {};
  }

  // Another launcher's flag, as the flag that it stands for.
  Status ApplyOther(const FlagRow& row, const std::string& value) {
    if (row.flag == Flag::kAlias) {
      return ApplyWords(row.help, value);
    }
    for (std::string_view rest = value; !rest.empty();) {
      const std::string_view part = rest.substr(0, rest.find(','));
      const char* const words = MeaningOf(row, part);
      if (words == nullptr) {
        return Refuse((from_variables_ ? "" : typed_ + ": ") + "here, " + row.help);
      }
      const size_t digit = std::min(part.find_first_of("0123456789"), part.size());
      const size_t end = part.find_first_not_of("0123456789", digit);
      FERRY_RETURN_IF_ERROR(ApplyWords(words, std::string(part.substr(digit, end - digit))));
      rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    }
    return {};
  }

  // "FLAG VALUE", with `value` in the place of %, or nothing.
  Status ApplyWords(std::string_view words, const std::string& value) {
    if (words.empty()) {
      return {};
    }
    const size_t space = std::min(words.find(' '), words.size());
    const std::string flag(words.substr(0, space));
    std::vector<std::string> values;
    if (space < words.size()) {
      std::string& text = values.emplace_back(words.substr(space + 1));
      if (const size_t place = text.find('%'); place != text.npos) {
        text.replace(place, 1, value);
      }
    }
    return Apply(FindFlag(flag)->flag, flag, values);
  }

  static Status UnknownFlag(const std::string& name) {
    std::vector<std::string> options;
    for (const config::Option& option : config::OptionTable()) {
      if (option.source != config::Source::kEnvironmentOnly) {
        options.push_back(std::string("--") + option.name);
      }
    }
    std::vector<std::string_view> known(options.begin(), options.end());
    for (const FlagRow& row : FlagTable()) {
      for (const std::string_view other : NamesOf(row)) {
        if (other.starts_with('-')) {
          known.push_back(other);
        }
      }
    }
    const std::string meant = DidYouMean(name, known);
    return Refuse("unknown flag " + name + meant);
  }

  // Completes `values` with the words that follow, one for each word of `wanted`.
  Status TakeValues(const std::string& name, std::string_view wanted,
                    std::vector<std::string>* values) {
    if (wanted.starts_with('[')) {
      return {};
    }
    const size_t count =
        wanted.empty() ? 0 : 1 + static_cast<size_t>(std::count(wanted.begin(), wanted.end(), ' '));
    if (values->size() > count) {
      return Refuse(name + " takes no value, but has \"=" + values->front() + "\"");
    }
    while (values->size() < count) {
      if (next_ == words_.size()) {
        return Refuse(name + " needs " + std::string(wanted) + " after it");
      }
      values->push_back(words_[next_++]);
    }
    return {};
  }

  void SetOption(const std::string& name, const std::string& value) {
    arguments_.options.push_back("--" + name + "=" + value);
    arguments_.names_run_directory |= name == "run_directory";
  }

  Status Apply(Flag flag, const std::string& name, const std::vector<std::string>& values) {
    switch (flag) {
      case Flag::kHelp:
        return Print(HelpText());
      case Flag::kVersion:
        return Print(std::string("ferryrun ") + kFerryVersion + "\n");
      case Flag::kCompletion: {
        StatusOr<std::string> script = CompletionScript(DescribeCommandLine(), values[0]);
        FERRY_RETURN_IF_ERROR(script.status());
        return Print(std::move(*script));
      }
      case Flag::kIgnored:
        return {};
      case Flag::kVerbose:
        arguments_.verbose = true;
        return {};
      case Flag::kReportBindings:
        arguments_.report_bindings = true;
        return {};
      case Flag::kPrivate:
        arguments_.private_daemons = true;
        return {};
      case Flag::kName:
        arguments_.name = values[0];
        return {};
      case Flag::kLabel:
      case Flag::kNoLabel:
        arguments_.label = flag == Flag::kLabel;
        return {};
      case Flag::kKeepGoing:
        arguments_.keep_going = true;
        return {};
      case Flag::kOutput:
        return SetOutput(name, values[0]);
      case Flag::kReport:
        arguments_.report = true;
        arguments_.report_file = values.empty() ? "" : values[0];
        return CheckReport();
      case Flag::kTrace:
        arguments_.trace_file = values[0];
        return values[0].empty() ? Refuse(typed_ + ": the name of a file is wanted") : Status();
      case Flag::kTraceLast:
        return SetTraceLast(values[0]);
      case Flag::kFerryd:
        arguments_.ferryd = values[0];
        return {};
      case Flag::kNetwork:
        arguments_.network = values[0];
        return {};
      case Flag::kAllocation:
        return SetAllocation(name, values[0]);
      case Flag::kLauncher:
        SetOption("launcher", values[0]);
        return {};
      case Flag::kRsh:
        SetOption("rsh", values[0]);
        return {};
      case Flag::kErrorHandler:
        SetOption("initial_errhandler", values[0]);
        return {};
      case Flag::kMemoryKinds:
        SetOption("memory_alloc_kinds", values[0]);
        return {};
      case Flag::kMalloc:
        SetOption("malloc", "ferry");
        return {};
      case Flag::kAbi:
        return SetInterface(name, values[0]);
      default:
        return ApplyToRanks(flag, name, values);
    }
  }

  Status SetTraceLast(const std::string& text) {
    const StatusOr<uint64_t> last_ns = ReadDuration(text);
    if (!last_ns.ok()) {
      return Refuse(typed_ + ": " + last_ns.status().message());
    }
    arguments_.trace_last_ns = *last_ns;
    return {};
  }

  Status CheckReport() const {
    const std::string& file = arguments_.report_file;
    const std::string_view base = std::string_view(file).substr(file.rfind('/') + 1);
    const bool is_known = file.empty() || base.ends_with(".json") || base.ends_with(".html") ||
                          base.ends_with(".txt");
    return is_known ? Status()
                    : Refuse(typed_ +
                             ": the name of the file ends with .txt, .json or .html, "
                             "which says what it is to hold");
  }

  Status Print(std::string text) {
    text_ = std::move(text);
    done_ = true;
    return {};
  }

  Status ApplyToRanks(Flag flag, const std::string& name, const std::vector<std::string>& values) {
    switch (flag) {
      case Flag::kExport:
        return AddVariable(name, values[0], &part().variables);
      case Flag::kVariable:
        return AddVariable(name, values[0] + "=" + values[1], &part().variables);
      case Flag::kVariableForAll:
        return AddVariable(name, values[0] + "=" + values[1], &arguments_.variables);
      case Flag::kExportsForAll:
        return AddVariables(name, values[0]);
      case Flag::kHost:
        return AddHostList(name, values[0], &part().hosts);
      case Flag::kHosts:
        return AddHostList(name, values[0], &arguments_.hosts);
      case Flag::kHostFile: {
        const StatusOr<std::vector<Host>> hosts = ReadHostFile(values[0]);
        FERRY_RETURN_IF_ERROR(hosts.status());
        AddHosts(*hosts, &arguments_.hosts);
        return {};
      }
      case Flag::kRankFile: {
        StatusOr<std::vector<RankfileLine>> lines = ReadRankFile(values[0]);
        FERRY_RETURN_IF_ERROR(lines.status());
        arguments_.rank_lines = std::move(*lines);
        rank_file_typed_ = typed_;
        return {};
      }
      case Flag::kMapBy:
        return placement_.MapBy(typed_, values[0]);
      case Flag::kRankBy:
        return placement_.RankBy(typed_, values[0]);
      case Flag::kBindTo:
        return placement_.BindTo(typed_, values[0]);
      case Flag::kDirectory:
        return SetDirectory(name, values[0]);
      default:
        return ApplyNumber(flag, name, values[0]);
    }
  }

  Status ApplyNumber(Flag flag, const std::string& name, const std::string& value) {
    const StatusOr<uint64_t> number = WholeNumber(name, value);
    FERRY_RETURN_IF_ERROR(number.status());
    switch (flag) {
      case Flag::kRanks:
        if (part().ranks && *part().ranks != *number) {
          return Refuse(ranks_typed_ + " and " + typed_ +
                        " both say how many ranks to start: leave one out (--cpus-per-rank N gives "
                        "each rank N cores)");
        }
        ranks_typed_ = typed_;
        part().ranks = *number;
        return {};
      case Flag::kNodes:
        arguments_.nodes = *number;
        arguments_.names_nodes = true;
        return {};
      case Flag::kTimeout:
        arguments_.timeout_s = *number;
        return *number > 0 ? Status() : Refuse(name + " 0: a job needs some time");
      case Flag::kGrace:
        arguments_.grace_ms = *number;
        return {};
      case Flag::kDeadlockCheck:
        arguments_.deadlock_check_s = *number;
        return {};
      case Flag::kLaunchRadix:
        arguments_.launch_radix = *number;
        return {};
      case Flag::kLaunchTimeout:
        arguments_.launch_timeout_s = *number;
        return *number > 0 ? Status() : Refuse(name + " 0: a start needs some time");
      case Flag::kTreeRadix:
        SetOption("tree_radix", std::to_string(*number));
        return {};
      case Flag::kPerNode:
        return *number > 0 ? placement_.PerNode(typed_, *number)
                           : Refuse(name + " 0: a node gets at least one rank");
      default:
        return {ErrorCode::kInternal, name + " is in the table of flags, but nobody reads it"};
    }
  }

  // A rankfile says where ranks run, and so how many there are.
  Status SettleRankFile() {
    if (rank_file_typed_.empty()) {
      return {};
    }
    std::string other = placement_.FirstWords();
    for (Part& one : arguments_.parts) {
      other = one.hosts.empty() ? other : "-host " + one.hosts.front().name;
      if (arguments_.parts.size() == 1) {
        one.ranks = one.ranks.value_or(arguments_.rank_lines.size());
      }
    }
    if (arguments_.names_nodes) {
      other = "--nodes " + std::to_string(arguments_.nodes);
    }
    return other.empty() ? Status()
                         : Refuse(rank_file_typed_ + " and " + other +
                                  " both say where ranks run: leave one out");
  }

  // "NAME=value", or "NAME", whose value is looked up.
  Status AddVariable(const std::string& flag, const std::string& text,
                     std::vector<std::string>* variables) {
    const std::string name = text.substr(0, text.find('='));
    if (name.empty()) {
      return Refuse(flag + " '" + text + "': a variable has a name");
    }
    for (const config::Option& option : config::OptionTable()) {
      if (option.source == config::Source::kEnvironmentOnly &&
          config::EnvironmentVariable(option) == name) {
        return Refuse(flag + " " + name + ": that variable is ferryrun's own to set");
      }
    }
    const char* const entry[] = {text.c_str(), nullptr};
    for (const std::string& sentence : config::UnknownVariables(entry)) {
      std::fprintf(stderr, "ferryrun: warning: %s\n", sentence.c_str());
    }
    if (name.size() < text.size()) {
      variables->push_back(text);
    } else if (const auto value = config::FindVariable(environment_, name)) {
      variables->push_back(name + "=" + std::string(*value));
    } else {
      std::fprintf(stderr, "ferryrun: warning: %s %s: there is no such variable here\n",
                   flag.c_str(), name.c_str());
    }
    return {};
  }

  Status SetInterface(const std::string& flag, const std::string& value) {
    if (("|" + std::string(kInterfaces) + "|").find("|" + value + "|") == std::string::npos) {
      return Refuse(flag + "=" + value + ": it is one of " + std::string(kInterfaces));
    }
    return AddVariable(flag, "FERRY_ABI=" + value, &arguments_.variables);
  }

  Status AddVariables(const std::string& flag, std::string_view names) {
    while (!names.empty()) {
      const size_t end = std::min(names.find(','), names.size());
      FERRY_RETURN_IF_ERROR(
          AddVariable(flag, std::string(names.substr(0, end)), &arguments_.variables));
      names.remove_prefix(std::min(end + 1, names.size()));
    }
    return {};
  }

  static Status AddHostList(const std::string& flag, const std::string& text,
                            std::vector<Host>* hosts) {
    const StatusOr<std::vector<Host>> more = ParseHostList(text);
    if (!more.ok()) {
      return Refuse(flag + " " + text + ": " + more.status().message());
    }
    AddHosts(*more, hosts);
    return {};
  }

  // They count where neither a flag nor Ferry's own variable says it. Values without a meaning here
  // are warned of and no mistake, for they may be meant for other jobs.
  void TakeIntelVariables() {
    if (const auto own = config::FindVariable(environment_, "FERRY_BIND_TO")) {
      placement_.BindingIsSaid("FERRY_BIND_TO=" + std::string(*own));
    }
    placement_.YieldToFlags();
    from_variables_ = true;
    for (const FlagRow& row : FlagTable()) {
      const std::string name(NamesOf(row).front());
      const std::optional<std::string> value =
          name.starts_with("I_MPI_") ? VariableOfRanks(name) : std::nullopt;
      if (!value) {
        continue;
      }
      typed_ = name + "=" + *value;
      if (const Status status = ApplyOther(row, *value); !status.ok()) {
        std::fprintf(stderr, "ferryrun: warning: %s is ignored: %s\n", typed_.c_str(),
                     status.message().c_str());
      }
    }
  }

  // As all ranks will have it.
  std::optional<std::string> VariableOfRanks(const std::string& name) const {
    const std::vector<std::string>* const given[] = {
        arguments_.parts.size() == 1 ? &arguments_.parts.front().variables : nullptr,
        &arguments_.variables};
    for (const std::vector<std::string>* variables : given) {
      for (size_t i = variables == nullptr ? 0 : variables->size(); i-- > 0;) {
        if ((*variables)[i].starts_with(name + "=")) {
          return (*variables)[i].substr(name.size() + 1);
        }
      }
    }
    const auto value = config::FindVariable(environment_, name);
    return value ? std::optional<std::string>(*value) : std::nullopt;
  }

  Status SetAllocation(const std::string& flag, const std::string& system) {
    constexpr std::string_view kNames[] = {"auto", "none", "slurm",     "pbs",
                                           "lsf",  "flux", "gridengine"};
    if (std::find(std::begin(kNames), std::end(kNames), system) == std::end(kNames)) {
      return Refuse(flag + " " + system +
                    ": it knows auto, none, slurm, pbs, lsf, gridengine and flux");
    }
    arguments_.allocation = system;
    return {};
  }

  // A directory; or one of Open MPI's words, of which some say it too.
  Status SetOutput(const std::string& flag, const std::string& text) {
    constexpr std::string_view kDirectory = "dir=";
    if (const char* const words = MeaningOf(*FindFlag(flag), text)) {
      return ApplyWords(words, "");
    }
    const std::string path = text.starts_with(kDirectory) ? text.substr(kDirectory.size()) : text;
    if (path.empty() || path.find_first_of("%,=") != path.npos) {
      return Refuse(flag + " '" + text +
                    "': it names a directory, without %, = and commas, for the files rank.N.out "
                    "and rank.N.err; --label puts the rank before each line");
    }
    arguments_.output = path;
    return {};
  }

  Status SetDirectory(const std::string& flag, const std::string& path) {
    std::error_code error;
    const auto absolute = std::filesystem::absolute(path, error);
    if (path.empty() || error) {
      return Refuse(flag + " '" + path + "' is no directory");
    }
    part().directory = absolute.string();
    return {};
  }

  const std::vector<std::string> words_;
  const char* const* const environment_;
  size_t next_ = 0;
  Arguments arguments_;
  std::string text_;
  bool done_ = false;
  PlacementRules placement_;
  std::string rank_file_typed_;  // what named a rankfile; empty: nothing
  std::string ranks_typed_;      // what said how many ranks the part has
  std::string typed_;            // the flag that is being applied, as the user wrote it
  bool from_variables_ = false;  // it is none
};

}  // namespace

std::variant<Arguments, int> ParseArguments(int argc, const char* const* argv,
                                            const char* const* environment) {
  Parser parser({argv + 1, argv + argc}, environment);
  StatusOr<Arguments> arguments = parser.Parse();
  if (!arguments.ok()) {
    std::fprintf(stderr, "ferryrun: %s (ferryrun --help explains the flags)\n",
                 arguments.status().message().c_str());
    return kUsageError;
  }
  if (!parser.text().empty()) {
    std::fputs(parser.text().c_str(), stdout);
    return 0;
  }
  return std::move(*arguments);
}

}  // namespace ferry::tools
