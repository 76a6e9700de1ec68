#include "tests/mpi/fuzz/signatures.h"

#include <fnmatch.h>
#include <mpix.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <type_traits>
#include <utility>

#include "tests/mpi/mpix_calls.h"

// Those of mpix.h, declared once more: the list's parameters are the header's, or this does not
// compile.
#define FERRY_DECLARE(name, parameters) extern "C" int MPIX_##name parameters;
FERRY_MPIX_CALLS(FERRY_DECLARE)

namespace ferry::mpi {
namespace {

template <typename T>
T FromWord(uint64_t word) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<T>(word);
  } else {
    return static_cast<T>(word);
  }
}

template <typename Result, typename... Arguments, size_t... kIndices>
std::function<int(const uint64_t*)> ByWords(Result (*function)(Arguments...),
                                            std::index_sequence<kIndices...>) {
  return [function]([[maybe_unused]] const uint64_t* words) -> int {
    if constexpr (std::is_same_v<Result, int>) {
      return function(FromWord<Arguments>(words[kIndices])...);
    } else {
      (void)function(FromWord<Arguments>(words[kIndices])...);
      return MPI_SUCCESS;
    }
  };
}

template <typename Result, typename... Arguments>
std::function<int(const uint64_t*)> ByWords(Result (*function)(Arguments...)) {
  return ByWords(function, std::index_sequence_for<Arguments...>());
}

bool IsOfName(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// "const int displs[]" is the type "const int[]" with a name.
Parameter ParseParameter(const std::string& text) {
  const size_t bracket = std::min(text.find('['), text.size());
  size_t begin = bracket;
  while (begin > 0 && IsOfName(text[begin - 1])) {
    --begin;
  }
  std::string type = text.substr(0, begin) + text.substr(bracket);
  std::erase_if(type, [&type](const char& c) {
    const size_t at = static_cast<size_t>(&c - type.data());
    return c == ' ' && (at + 1 >= type.size() || !IsOfName(type[at + 1]));
  });
  return {type, text.substr(begin, bracket - begin)};
}

std::vector<Parameter> ParseParameters(const std::string& text) {
  std::vector<Parameter> parameters;
  for (size_t begin = 1; begin < text.size();) {  // after the parenthesis
    const size_t end = std::min(text.find(',', begin), text.size() - 1);
    const size_t first = std::min(text.find_first_not_of(' ', begin), end);
    parameters.push_back(ParseParameter(text.substr(first, end - first)));
    begin = end + 1;
  }
  if (parameters.size() == 1 && parameters.front().name == "void") {
    parameters.clear();
  }
  return parameters;
}

class Table {
 public:
  template <typename Function>
  void Add(const char* name, const char* parameters, Function* function) {
    // Of tools: calls that come too late here, and events, whose arguments are functions.
    static constexpr std::array kLeftOut = {"MPI_Init",
                                            "MPI_Init_thread",
                                            "MPI_Finalize",
                                            "MPI_Abort",
                                            "MPI_T_finalize",
                                            "MPI_T_init_thread",
                                            "MPI_T_cvar_write",
                                            "MPI_T_event_[!g]*",
                                            "MPI_T_event_get_[!n]*",
                                            "MPI_T_source_get_[!n]*"};
    if (std::none_of(kLeftOut.begin(), kLeftOut.end(),
                     [name](const char* each) { return fnmatch(each, name, 0) == 0; })) {
      signatures_.push_back({name, ParseParameters(parameters), ByWords(function)});
    }
  }
  // Ignores a call that has no list of types, or returns no integer.
  void Add(const char*, const char*, int (*)(int, ...)) {}
  void Add(const char*, const char*, double (*)()) {}

  std::vector<CallSignature> Take() { return std::move(signatures_); }

 private:
  std::vector<CallSignature> signatures_;
};

}  // namespace

// The headers are read again, for the names.
#undef FERRY_MPI_COLLECTIVES_H_
#undef FERRY_MPI_COLLECTIVES_INIT_H_
#undef FERRY_MPI_COMMUNICATORS_H_
#undef FERRY_MPI_DATATYPES_H_
#undef FERRY_MPI_ENVIRONMENT_H_
#undef FERRY_MPI_FILES_H_
#undef FERRY_MPI_NEIGHBOURS_H_
#undef FERRY_MPI_PARTITIONED_H_
#undef FERRY_MPI_POINT_TO_POINT_H_
#undef FERRY_MPI_SESSIONS_H_
#undef FERRY_MPI_TOOLS_H_
#undef FERRY_MPI_WINDOWS_H_

std::vector<CallSignature> AllSignatures() {
  Table table;
#define FERRY_MPI(result, name, parameters) table.Add("MPI_" #name, #parameters, &MPI_##name)
#include "ferry/mpi/ferry_mpi/collectives.h"
#include "ferry/mpi/ferry_mpi/collectives_init.h"
#include "ferry/mpi/ferry_mpi/communicators.h"
#include "ferry/mpi/ferry_mpi/datatypes.h"
#include "ferry/mpi/ferry_mpi/environment.h"
#include "ferry/mpi/ferry_mpi/files.h"
#include "ferry/mpi/ferry_mpi/neighbours.h"
#include "ferry/mpi/ferry_mpi/partitioned.h"
#include "ferry/mpi/ferry_mpi/point_to_point.h"
#include "ferry/mpi/ferry_mpi/sessions.h"
#include "ferry/mpi/ferry_mpi/tools.h"
#include "ferry/mpi/ferry_mpi/windows.h"
  // The others of their chapter are refused, whatever they are given.
  table.Add("MPI_Comm_get_parent", "(MPI_Comm* parent)", &MPI_Comm_get_parent);
  table.Add("MPI_Comm_disconnect", "(MPI_Comm* comm)", &MPI_Comm_disconnect);

#define FERRY_ADD_OWN(name, parameters) table.Add("MPIX_" #name, #parameters, &MPIX_##name);
  FERRY_MPIX_CALLS(FERRY_ADD_OWN)
  return table.Take();
}

}  // namespace ferry::mpi
