// The ids of the jobs in which the programs of one launch run that follow each other: "x" of the
// first one, "x#2" of the second.
//
// Any thread; plain functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/number_text.h"

namespace ferry {

// No id that a launcher gives has it.
inline constexpr char kProgramMark = '#';

struct JobName {
  std::string launch;  // the id of the first program's job
  uint32_t program = 1;
};

inline std::string TextOf(const JobName& name) {
  return name.program == 1 ? name.launch
                           : name.launch + kProgramMark + std::to_string(name.program);
}

// An id that TextOf gives for no name is taken whole, as that of a first program.
inline JobName ReadJobName(const std::string& job_id) {
  const size_t mark = job_id.rfind(kProgramMark);
  if (mark != job_id.npos) {
    const auto program = NumberIn<uint32_t>(std::string_view(job_id).substr(mark + 1));
    const JobName name{job_id.substr(0, mark), program.value_or(0)};
    if (name.program > 1 && TextOf(name) == job_id) {
      return name;
    }
  }
  return {job_id, 1};
}

}  // namespace ferry
