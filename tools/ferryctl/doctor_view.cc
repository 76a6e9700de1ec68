#include "tools/ferryctl/doctor_view.h"

#include <string>

namespace ferry::tools {
namespace {

const char* VerdictText(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kProblem:
      return "problem";
  }
  return "";
}

}  // namespace

View DoctorView(const std::vector<Finding>& findings, const Terminal& terminal) {
  constexpr size_t kVerdictWidth = 9;
  View view = {{{"findings", nlohmann::ordered_json::array()}}, ""};
  for (const Finding& finding : findings) {
    const std::string verdict = VerdictText(finding.verdict);
    view.json["findings"].push_back({{"name", finding.name},
                                     {"verdict", verdict},
                                     {"found", finding.found},
                                     {"mend", finding.mend}});
    view.text += Coloured(verdict, terminal) + std::string(kVerdictWidth - verdict.size(), ' ') +
                 finding.name + ": " + finding.found + "\n";
    if (!finding.mend.empty()) {
      view.text += std::string(kVerdictWidth, ' ') + "-> " + finding.mend + "\n";
    }
  }
  return view;
}

}  // namespace ferry::tools
