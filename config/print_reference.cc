// Prints what is generated from the options table:
//   bazel run //config:print_reference -- toml > config/ferryd.toml
//   bazel run //config:print_reference -- markdown
#include <cstdio>
#include <string_view>

#include "config/reference.h"

int main(int argc, char** argv) {
  const std::string_view form = argc == 2 ? argv[1] : "";
  if (form != "toml" && form != "markdown") {
    std::fprintf(stderr, "usage: print_reference toml|markdown\n");
    return 2;
  }
  const std::string text =
      form == "toml" ? ferry::config::DefaultToml() : ferry::config::OptionsMarkdown();
  std::fputs(text.c_str(), stdout);
  return 0;
}
