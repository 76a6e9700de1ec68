// One line of `ferryctl doctor`. Plain data.
#pragma once

#include <string>

namespace ferry::tools {

enum class Verdict { kOk, kWarning, kProblem };

struct Finding {
  std::string name;  // what was looked at
  Verdict verdict = Verdict::kOk;
  std::string found;  // what there is, in words
  std::string mend;   // what to do about it; empty when nothing
};

}  // namespace ferry::tools
