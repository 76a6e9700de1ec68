// Prints what is generated from the options table:
//   bazel run //config:print_reference -- toml > config/ferryd.toml
//   bazel run //config:print_reference -- markdown
//   bazel run //config:print_reference -- man       (for docs/man, whose build calls it)
#include <cstdio>
#include <string>
#include <string_view>

#include "config/reference.h"

int main(int argc, char** argv) {
  const std::string_view form = argc == 2 ? argv[1] : "";
  std::string text;
  if (form == "toml") {
    text = ferry::config::DefaultToml();
  } else if (form == "markdown") {
    text = ferry::config::OptionsMarkdown();
  } else if (form == "man") {
    text = ferry::config::OptionsMan();
  } else {
    std::fprintf(stderr, "usage: print_reference toml|markdown|man\n");
    return 2;
  }
  std::fputs(text.c_str(), stdout);
  return 0;
}
