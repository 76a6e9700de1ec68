#include "mpi/mpi_t/control.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>
#include <variant>

#include "config/environment.h"
#include "mpi/base/connection.h"

namespace ferry::mpi {
namespace {

using config::Group;
using config::Option;
using config::Options;

// The options that ranks read themselves when they join their job; the others are the daemons', or
// a launcher's.
constexpr std::array kReadByRanks = {
    std::string_view("run_directory"),
    std::string_view("request_limit"),
    std::string_view("unexpected_limit"),
    std::string_view("heap_bytes"),
    std::string_view("eager_max_bytes"),
    std::string_view("receiver_first_min_bytes"),
    std::string_view("rendezvous_chunk_bytes"),
    std::string_view("spin_pauses"),
    std::string_view("idle_before_sleep_us"),
    std::string_view("attach_timeout_ms"),
    std::string_view("gpu_backend"),
    std::string_view("pipeline_threshold_bytes"),
    std::string_view("offload_min_bytes"),
    std::string_view("matched_cell_bytes"),
    std::string_view("matched_cells"),
    std::string_view("collective_table"),
    std::string_view("collective_algorithms"),
    std::string_view("device_reduction_min_bytes"),
    std::string_view("memory_alloc_kinds"),
    std::string_view("mpi_check"),
    std::string_view("mpi_warn_after_ms"),
};

bool IsReadByRanks(std::string_view name) {
  return std::find(kReadByRanks.begin(), kReadByRanks.end(), name) != kReadByRanks.end();
}

std::vector<std::string> Split(std::string_view choices) {
  std::vector<std::string> found;
  while (!choices.empty()) {
    const size_t end = std::min(choices.find('|'), choices.size());
    found.emplace_back(choices.substr(0, end));
    choices.remove_prefix(std::min(end + 1, choices.size()));
  }
  return found;
}

bool IsNumber(const Option& option) {
  return std::holds_alternative<uint64_t Options::*>(option.member);
}

// As the rank that has joined has them; else as MPI_Init would read them now.
StatusOr<Options> CurrentOptions() {
  if (front_end != nullptr) {
    return front_end->options();
  }
  return config::OptionsFromEnvironment(config::ProcessEnvironment());
}

// The text that the option would be given in the environment.
Result<std::string> TextOf(const ControlVariable& variable, const void* buffer) {
  if (IsNumber(*variable.option)) {
    uint64_t number = 0;
    std::memcpy(&number, buffer, sizeof(number));
    return std::to_string(number);
  }
  if (variable.choices.empty()) {
    const auto* const text = static_cast<const char*>(buffer);
    return std::string(text, strnlen(text, static_cast<size_t>(variable.count())));
  }
  int choice = 0;
  std::memcpy(&choice, buffer, sizeof(choice));
  if (choice < 0 || static_cast<size_t>(choice) >= variable.choices.size()) {
    return Failure{MPI_T_ERR_INVALID, std::to_string(choice) + " is none of the enumeration's " +
                                          std::to_string(variable.choices.size()) + " items"};
  }
  return variable.choices[static_cast<size_t>(choice)];
}

}  // namespace

MPI_Datatype ControlVariable::datatype() const {
  return IsNumber(*option) ? MPI_UNSIGNED_LONG_LONG : choices.empty() ? MPI_CHAR : MPI_INT;
}

int ControlVariable::count() const {
  return IsNumber(*option) || !choices.empty() ? 1 : static_cast<int>(option->max) + 1;
}

MPI_T_enum ControlVariable::enumeration() const {
  return choices.empty() ? MPI_T_ENUM_NULL
                         : reinterpret_cast<MPI_T_enum>(const_cast<ControlVariable*>(this));
}

int ControlVariable::verbosity() const {
  switch (option->group) {
    case Group::kMpi:
    case Group::kShmem:
    case Group::kLog:
    case Group::kLaunching:
      return MPI_T_VERBOSITY_USER_BASIC;
    case Group::kMessages:
    case Group::kLinks:
    case Group::kWaiting:
    case Group::kGpu:
      return MPI_T_VERBOSITY_TUNER_BASIC;
    case Group::kPlace:
    case Group::kNetwork:
    case Group::kLimits:
    case Group::kFailures:
      return MPI_T_VERBOSITY_TUNER_DETAIL;
    case Group::kSimulation:
    case Group::kLaunch:
      break;
  }
  return MPI_T_VERBOSITY_MPIDEV_BASIC;
}

// Rank 0's value of MPI's options counts for all, so all are to set the same.
int ControlVariable::scope() const {
  return !can_be_set                    ? MPI_T_SCOPE_READONLY
         : option->group == Group::kMpi ? MPI_T_SCOPE_ALL_EQ
                                        : MPI_T_SCOPE_LOCAL;
}

std::string ControlVariable::description() const {
  return std::string(option->help) + " Allowed: " + config::AllowedValues(*option) +
         ". By default \"" + config::OptionText(*option, Options()) + "\". Environment variable " +
         config::EnvironmentVariable(*option) + ".";
}

const std::vector<ControlVariable>& ControlVariables() {
  static const auto& variables = *new std::vector<ControlVariable>([] {
    std::vector<ControlVariable> made;
    for (const Option& option : config::OptionTable()) {
      if (!option.secret) {
        made.push_back({&option, Split(option.choices), IsReadByRanks(option.name)});
      }
    }
    return made;
  }());
  return variables;
}

const ControlVariable* FindEnumeration(MPI_T_enum enumeration) {
  for (const ControlVariable& variable : ControlVariables()) {
    if (enumeration != MPI_T_ENUM_NULL && variable.enumeration() == enumeration) {
      return &variable;
    }
  }
  return nullptr;
}

Failure ReadControl(const ControlVariable& variable, void* buffer) {
  const StatusOr<Options> options = CurrentOptions();
  if (!options.ok()) {
    return {MPI_T_ERR_NOT_ACCESSIBLE, options.status().message()};
  }
  const Option& option = *variable.option;
  if (const auto* const number = std::get_if<uint64_t Options::*>(&option.member)) {
    std::memcpy(buffer, &((*options).*(*number)), sizeof(uint64_t));
    return {};
  }
  const std::string& text = (*options).*std::get<std::string Options::*>(option.member);
  if (variable.choices.empty()) {
    const size_t size = std::min(text.size(), static_cast<size_t>(variable.count()) - 1);
    std::memcpy(buffer, text.data(), size);
    static_cast<char*>(buffer)[size] = '\0';
    return {};
  }
  const auto found = std::find(variable.choices.begin(), variable.choices.end(), text);
  if (found == variable.choices.end()) {
    return {MPI_T_ERR_NOT_ACCESSIBLE, "its value \"" + text + "\" is none of its enumeration"};
  }
  const auto choice = static_cast<int>(found - variable.choices.begin());
  std::memcpy(buffer, &choice, sizeof(choice));
  return {};
}

Failure WriteControl(const ControlVariable& variable, const void* buffer, bool begun) {
  const std::string name = config::EnvironmentVariable(*variable.option);
  if (!variable.can_be_set) {
    return {MPI_T_ERR_CVAR_SET_NEVER,
            "ranks do not read this option: give it to ferryd or ferryrun (" + name + ")"};
  }
  if (begun) {
    return {MPI_T_ERR_CVAR_SET_NOT_NOW,
            "MPI has begun, and options are read there: set it before MPI_Init, or " + name +
                " before the start"};
  }
  const Result<std::string> text = TextOf(variable, buffer);
  FERRY_RETURN_FAILURE(text.failure());
  Options checked;
  if (const Status status = config::SetOption(*variable.option, text.value(), name, &checked);
      !status.ok()) {
    return {MPI_T_ERR_INVALID, status.message()};
  }
  return setenv(name.c_str(), text.value().c_str(), 1) == 0
             ? Failure()
             : Failure{MPI_T_ERR_MEMORY, "there is no memory for another environment variable"};
}

}  // namespace ferry::mpi
