#include "tools/ferryctl/print.h"

#include <unistd.h>

#include <cstdio>

#include "config/environment.h"

namespace ferry::tools {

using nlohmann::ordered_json;

Terminal StandardOutput() { return TerminalOf(STDOUT_FILENO, config::ProcessEnvironment()); }

void Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void PrintJson(const ordered_json& value, int indent) {
  Print(value.dump(indent, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace ferry::tools
